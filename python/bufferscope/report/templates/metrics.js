// Tables of metrics: filters by metric and by point, a file of what is shown, and numbers that spreadsheets can read.
(() => {
  "use strict";
  const NARROW_BLANK = /\u202f/g; // between thousands
  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (wanted, text) => wanted.every((word) => text.toLowerCase().includes(word));
  const plain = (text) => text.replace(NARROW_BLANK, "").replace(/\u00a0/g, " ").trim();

  function toggle(element, shown) { element.hidden = !shown; }

  // Shows the columns whose name or meaning, and the rows whose label, has all the words that are looked for.
  function filter(form) {
    const fold = form.parentElement;
    const metrics = words(form.elements.metrics.value);
    const points = words(form.elements.points?.value ?? "");
    let shownMetrics = 0, allMetrics = 0, shownPoints = 0, allPoints = 0;
    for (const table of fold.querySelectorAll(".families table")) {
      const headings = [...table.tHead.rows[0].cells];
      const shown = headings.map((cell) => !cell.dataset.metric || fits(metrics, cell.title));
      const named = headings.filter((cell, index) => cell.dataset.metric && shown[index]).length;
      allMetrics += headings.filter((cell) => cell.dataset.metric).length;
      shownMetrics += named;
      shownPoints = allPoints = 0;
      for (const row of table.rows) {
        [...row.cells].forEach((cell, index) => toggle(cell, shown[index]));
        if (row.parentElement.tagName === "THEAD") continue;
        const fitting = fits(points, row.cells[0].tagName === "TH" ? row.cells[0].textContent : "");
        toggle(row, fitting);
        allPoints += 1;
        shownPoints += fitting;
      }
      toggle(table.parentElement, named > 0 && shownPoints > 0);
    }
    const told = [`${shownMetrics} of ${allMetrics} metrics`];
    if (form.elements.points) told.push(`${shownPoints} of ${allPoints} points`);
    form.querySelector("output").value = told.join(", ");
  }

  // A value for a file: the number, and beside it what follows "±".
  function split(text) {
    const [value, half = ""] = plain(text).split("±").map((part) => part.trim());
    return [value, half];
  }

  // One row a point and one column a metric, as shown; metrics with a ± have a second column.
  function rows(fold) {
    const columns = [];
    let labels = null;
    for (const table of fold.querySelectorAll(".scroll:not([hidden]) > table")) {
      const body = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      if (body[0].cells[0].tagName === "TH") labels = body.map((row) => plain(row.cells[0].textContent));
      [...table.tHead.rows[0].cells].forEach((heading, index) => {
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

  // RFC 4180: fields with a comma, a quote or a line break are quoted, quotes in them doubled.
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

  // What is copied out of a table has numbers without blanks between their thousands.
  document.addEventListener("copy", (event) => {
    const selection = document.getSelection();
    const inside = selection.anchorNode?.parentElement?.closest(".families");
    if (!inside || selection.isCollapsed) return;
    event.clipboardData.setData("text/plain", selection.toString().replace(NARROW_BLANK, ""));
    event.preventDefault();
  });
})();
