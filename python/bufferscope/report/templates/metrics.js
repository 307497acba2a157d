// Tables of metrics: filters by metric and by point, download of the cells shown, and numbers that spreadsheets can
// read.
(() => {
  "use strict";
  const NARROW_BLANK = /\u202f/g; // between thousands
  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (wanted, text) => wanted.every((word) => text.toLowerCase().includes(word));
  const plain = (text) => text.replace(NARROW_BLANK, "").replace(/\u00a0/g, " ").trim();

  // A heading's tooltip has the metric's whole name, and its meaning, which the page has once.
  const meanings = [...document.querySelectorAll(".meanings dd")].map((each) => each.firstChild.textContent.trim());
  for (const cell of document.querySelectorAll("th[data-metric]")) {
    cell.title = [cell.dataset.metric, meanings[cell.dataset.means]].filter(Boolean).join(": ");
  }

  // Shows the columns whose name or meaning contains all the words searched for, and the rows whose label does.
  function filter(form) {
    const metrics = words(form.elements.metrics.value);
    const points = words(form.elements.points?.value ?? "");
    const counts = { metrics: 0, ofMetrics: 0, points: 0, ofPoints: 0 };
    for (const table of form.parentElement.querySelectorAll(".sheets table")) {
      const headings = [...table.tHead.rows[1].cells];
      const shown = headings.map((cell) => !cell.dataset.metric || fits(metrics, cell.title));
      const rows = [...table.tBodies[0].rows];
      const label = (row) => (row.cells[0].tagName === "TH" ? row.cells[0].textContent : "");
      for (const row of [table.tHead.rows[1], ...rows]) {
        [...row.cells].forEach((cell, index) => { cell.hidden = !shown[index]; });
      }
      for (const row of rows) row.hidden = !fits(points, label(row));
      const named = headings.filter((cell) => cell.dataset.metric);
      group(table.tHead.rows[0], named);
      const fitting = rows.filter((row) => !row.hidden).length;
      const left = named.filter((cell) => !cell.hidden).length;
      table.parentElement.hidden = !left || !fitting;
      counts.metrics += left;
      counts.ofMetrics += named.length;
      counts.points = fitting;
      counts.ofPoints = rows.length;
    }
    const told = [`${counts.metrics} of ${counts.ofMetrics} metrics`];
    if (form.elements.points) told.push(`${counts.points} of ${counts.ofPoints} points`);
    form.querySelector("output").value = told.join(", ");
  }

  // Each family's heading spans those of its columns that are still shown.
  function group(row, headings) {
    let start = 0;
    for (const cell of row.querySelectorAll("th")) {
      cell.dataset.all ??= cell.colSpan;
      const end = start + Number(cell.dataset.all);
      const left = headings.slice(start, end).filter((heading) => !heading.hidden).length;
      cell.hidden = !left;
      if (left) cell.colSpan = left;
      start = end;
    }
  }

  // A value for the file: the number, and separately the number after "±".
  function split(text) {
    const [value, half = ""] = plain(text).split("±").map((part) => part.trim());
    return [value, half];
  }

  // One row per point and one column per metric, as shown. Metrics with a ± have a second column.
  function rows(fold) {
    const columns = [];
    let labels = null;
    for (const table of fold.querySelectorAll(".scroll:not([hidden]) > table")) {
      const body = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      if (body[0].cells[0].tagName === "TH") labels = body.map((row) => plain(row.cells[0].textContent));
      [...table.tHead.rows[1].cells].forEach((heading, index) => {
        if (!heading.dataset.metric || heading.hidden) return;
        const values = body.map((row) => split(row.cells[index].textContent));
        columns.push([heading.dataset.metric, ...values.map(([value]) => value)]);
        if (values.some(([, half]) => half)) {
          columns.push([`${heading.dataset.metric} ± 95 %`, ...values.map(([, half]) => half)]);
        }
      });
    }
    if (labels) columns.unshift(["point", ...labels]);
    return columns.length ? columns[0].map((_, index) => columns.map((column) => column[index])) : [];
  }

  // RFC 4180: fields with a comma, a quote or a line break are quoted, and quotes in them are doubled.
  const field = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = (table) => table.map((row) => `${row.map(field).join(",")}\r\n`).join("");

  function save(form) {
    const url = URL.createObjectURL(new Blob([csv(rows(form.parentElement))], { type: "text/csv" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: form.dataset.file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  for (const form of document.querySelectorAll(".metrics .tools")) {
    form.hidden = false;
    form.addEventListener("input", () => filter(form));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector("button").addEventListener("click", () => save(form));
  }

  // Numbers that are copied out of a table have no blanks between their thousands.
  document.addEventListener("copy", (event) => {
    const selection = document.getSelection();
    const inside = selection.anchorNode?.parentElement?.closest(".sheets");
    if (!inside || selection.isCollapsed) return;
    event.clipboardData.setData("text/plain", selection.toString().replace(NARROW_BLANK, ""));
    event.preventDefault();
  });
})();
