// Replaces each figure's description, or its still picture, with an interactive chart in the page's colours, once the
// figure is near the part of the page that is shown. Without this script, or if a chart cannot be drawn, these stay.
(() => {
  "use strict";
  const NARROW = 460;
  const WIDE = 640;
  // Of a chart on each side, in pixels, as in the configuration.
  const PADDING = 8;
  // The styles of the names beside marks, and of the lines from these to the marks.
  const LABELS = ["label", "leader"];
  // Widths in pixels: a letter in a legend, an entry's symbol with the gaps around it, a chart's axis and padding.
  const CHARACTER = 7.2;
  const SYMBOL = 40;
  const BESIDE = 100;
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll("figure")];
  const datasets = new Map([...document.querySelectorAll("script.data")].map((each) => [each.dataset.name, each]));
  // How far from the screen a figure is drawn, in pixels.
  const NEAR = "800px";
  // A page with so many figures also draws those further away, while nothing else happens, so that paper has them.
  const MOST_AHEAD = 24;
  const TIME = "time_s";
  // Pixels that a small number of a matrix takes.
  const DIGITS = 28;
  // The most pixels of its labels on a narrow page.
  const UPRIGHT = 130;
  // A signal that is set from outside is not computed again.
  const AS_IT_IS = { skip: true };

  // The content of a script element, which is compressed.
  function inflated(element) {
    const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
  }
  const read = (element) => inflated(element).json();

  // The library that draws charts, which is not run before there is one to draw.
  let library;
  async function embed(...chart) {
    library ??= inflated(document.getElementById("charts")).text().then((code) => (0, eval)(code));
    await library;
    return vegaEmbed(...chart);
  }

  // A figure's chart with rows of data; `report/datasets.py` says how the data are written.
  async function written(figure) {
    const spec = await read(figure.querySelector("script.spec"));
    const used = new Set();
    JSON.stringify(spec, (key, value) => {
      if (key === "data" && datasets.has(value?.name)) used.add(value.name);
      return value;
    });
    spec.datasets = {};
    for (const name of used) spec.datasets[name] = rows(await read(datasets.get(name)));
    return spec;
  }

  function rows({ rows: count, columns, values }) {
    if (values) return values;
    const found = Array.from({ length: count }, () => ({}));
    for (const [name, column] of Object.entries(columns)) {
      unpacked(column).forEach((value, row) => { found[row][name] = value; });
    }
    return found;
  }

  function unpacked(column) {
    if (Array.isArray(column)) return column;
    if (column.steps) {
      let sum = 0;
      return column.steps.map((step) => (sum += step) / column.unit);
    }
    const values = [];
    for (let at = 0; at < column.runs.length; at += 2) {
      values.push(...Array(column.runs[at + 1]).fill(column.words[column.runs[at]]));
    }
    return values;
  }

  // A legend has as many columns as there is room for. If all entries fit in one line, they are beside its title.
  function configuration(spec, width, theme) {
    const config = structuredClone(themes[theme]);
    const { names, title } = legend(spec);
    const widths = names.map((name) => CHARACTER * name.length + SYMBOL);
    const plot = width - BESIDE;
    if (width < NARROW || widths.reduce((sum, width) => sum + width, CHARACTER * title.length) > plot) {
      const columns = Math.max(1, Math.min(names.length, Math.floor(plot / Math.max(0, ...widths))));
      Object.assign(config.legend, { columns, titleOrient: "top", layout: { top: { direction: "vertical" } } });
    }
    const across = spec.concat ? spec.concat[0].width : width;
    if (across < NARROW) config.axisX = { ...config.axisX, tickCount: 5 };
    return config;
  }

  // The entries of the legend of colours, which panels share.
  function legend(spec) {
    const layers = (spec.concat ?? [spec]).flatMap(({ layer = [] }) => layer);
    const color = layers.map(({ encoding }) => encoding?.color).find((code) => code?.legend);
    return { names: color?.scale?.domain ?? [], title: color?.title ?? "" };
  }

  // Among figures that share a time axis, only the lowest names it. On a phone, there is no room for names beside a
  // plot.
  async function specification(figure) {
    const spec = await written(figure);
    if (spec.concat) return panels(spec, figure.clientWidth);
    if (spec.usermeta?.matrix?.needed > figure.clientWidth) narrowed(spec, figure.clientWidth);
    if (figure.clientWidth < NARROW) {
      spec.layer = spec.layer.filter(({ name }) => name !== "names");
    }
    if (figure.parentElement.matches(".stack") && figure.nextElementSibling?.matches("figure")) {
      for (const { encoding } of spec.layer) if (encoding.x?.title) encoding.x.title = null;
    }
    return spec;
  }

  // Narrow columns of a matrix have upright labels and small numbers, or none; tooltips have the intervals.
  function narrowed(spec, width) {
    const { beside, columns } = spec.usermeta.matrix;
    const column = (width - Math.min(beside, UPRIGHT)) / columns;
    const shown = column < DIGITS ? ["cell"] : ["cell", "number"];
    spec.layer = spec.layer.filter(({ mark }) => shown.includes(mark.style));
    for (const { mark, encoding } of spec.layer) {
      delete encoding.x.axis.labelExpr;
      delete encoding.x.axis.labelPadding;
      Object.assign(encoding.x.axis, { labelAngle: -90, labelLimit: UPRIGHT });
      encoding.y.axis.labelLimit = UPRIGHT;
      if (mark.style === "number") Object.assign(mark, { dy: 0, fontSize: 10 });
    }
  }

  // Panels stand side by side if there is room for that. `usermeta.panels` says how much stands beside their plots, and
  // the least width of a plot with room for names; in a narrower one, tooltips have them.
  function panels(spec, width) {
    const { beside, between, columns, least } = spec.usermeta.panels;
    spec.columns = width < WIDE ? 1 : columns;
    const whole = (width - 2 * PADDING - (spec.columns - 1) * between) / spec.columns;
    for (const panel of spec.concat) {
      panel.width = Math.max(80, Math.floor(whole - beside));
      if (panel.width < least) panel.layer = panel.layer.filter(({ mark }) => !LABELS.includes(mark.style));
    }
    return spec;
  }

  async function draw(figure) {
    try {
      const spec = await specification(figure);
      const target = figure.querySelector(".live");
      figure.drawnWidth = spec.concat && figure.clientWidth;
      figure.classList.add("is-live");
      figure.view?.finalize();
      const theme = dark.matches ? "dark" : "light";
      const options = { mode: "vega-lite", actions: false, renderer: "canvas", tooltip: { theme } };
      options.config = configuration(spec, figure.clientWidth, theme);
      figure.view = (await embed(target, spec, options)).view;
      stacks.get(figure.parentElement)?.join(figure);
      figure.dataset.drawn = "";
      delete figure.dataset.failed;
      figure.querySelector(".reason")?.remove();
    } catch (error) {
      leave(figure, error);
    }
  }

  // Shows the description or the still picture of a chart that cannot be drawn, and why.
  function leave(figure, error) {
    console.error(figure.id, error);
    figure.classList.remove("is-live");
    figure.view = undefined;
    delete figure.dataset.drawn;
    figure.dataset.failed = "";
    const files = figure.querySelector(".files");
    const reason = files.querySelector(".reason") ?? files.appendChild(document.createElement("span"));
    reason.className = "reason";
    reason.textContent = `${figure.querySelector("img.still") ? "Not interactive" : "Not drawn"}: ${error.message ?? error}`;
  }

  // Figures over time that are below one another share the time under the pointer, the period shown and the chosen
  // series. The names of signals and data are those of the parameters in figures/pointer.py.
  class Stack {
    constructor(element) {
      this.figures = [...element.querySelectorAll("figure")];
      this.signals = { pointed_s: null, [`zoom_${TIME}`]: null };
      this.chosen = [];
      this.whole = document.createElement("div");
      this.whole.className = "whole";
      this.whole.innerHTML = "<button type=button hidden>Show the whole run</button>";
      this.button = this.whole.firstChild;
      this.button.addEventListener("click", () => this.show(null));
      element.prepend(this.whole);
      for (const figure of this.figures) this.pinchable(figure);
    }

    // Connects a figure that was drawn (again) with the others, in both directions.
    join(figure) {
      const { view } = figure;
      this.extent = view.scale("x").domain();
      for (const [name, value] of Object.entries(this.signals)) {
        if (value !== null) view.signal(name, value, AS_IT_IS);
        view.addSignalListener(name, (_, now) => this.share(name, now));
      }
      if (choosesPoints(view)) {
        if (this.chosen.length) view.data("isolated_store", this.chosen.map(choice));
        view.addEventListener("dblclick", () => this.choose([]));
        view.addDataListener("isolated_store", (_, now) => this.choose(now));
      }
      view.runAsync();
    }

    share(name, value) {
      if (same(this.signals[name], value)) return;
      this.signals[name] = value;
      for (const { view } of this.figures) {
        if (view && !same(view.signal(name), value)) view.signal(name, value, AS_IT_IS).runAsync();
      }
      this.button.hidden = this.signals[`zoom_${TIME}`] === null;
    }

    choose(tuples) {
      const now = tuples.map(choice);
      if (same(this.chosen, now)) return;
      this.chosen = now;
      for (const { view } of this.figures) {
        if (view && choosesPoints(view) && !same(view.data("isolated_store").map(choice), now)) {
          view.data("isolated_store", now.map(choice)).runAsync();
        }
      }
    }

    // The period that the figures show: [from, to] in seconds, or null for the whole run.
    show(domain) {
      this.share(`zoom_${TIME}`, domain);
    }

    // A finger holds on to the time that it touches: one finger moves the time axis, two fingers zoom it. Moving up or
    // down scrolls the page. (Vega-Lite's own dragging ignores the first touch, because it asks for the mark that was
    // under the pointer before.)
    pinchable(figure) {
      const fingers = new Map();
      let held = [];
      const places = () => [...fingers.values()];
      const place = (event) => {
        const canvas = figure.querySelector("canvas").getBoundingClientRect();
        const start = canvas.left + figure.view.padding().left + figure.view.origin()[0];
        fingers.set(event.pointerId, event.clientX - start);
      };
      const hold = () => {
        held = places().map((x) => figure.view.scale("x").invert(x));
      };
      figure.querySelector(".live").addEventListener("pointerdown", (event) => {
        if (event.pointerType !== "touch" || !figure.view) return;
        place(event);
        hold();
      }, true);
      window.addEventListener("pointermove", (event) => {
        if (!fingers.has(event.pointerId)) return;
        event.stopImmediatePropagation();
        place(event);
        const [from, to] = figure.view.scale("x").domain();
        this.show(pulled(held, places(), figure.view.signal("width"), to - from, this.extent));
      }, true);
      const lift = (event) => {
        if (fingers.delete(event.pointerId)) hold();
      };
      window.addEventListener("pointerup", lift, true);
      window.addEventListener("pointercancel", lift, true);
    }
  }

  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const choice = ({ unit, fields, values }) => ({ unit, fields, values });

  // Whether points can be chosen in a chart's legend (other charts have no legend, or one of something else).
  function choosesPoints(view) {
    return "isolated_point_legend" in view.getState({ signals: () => true, data: () => false }).signals;
  }

  // The times at both ends of a plot of this width, given one or two `held` times and their places, within `start` and
  // `end`. null stands for the whole of that range. One finger leaves the `span` between the ends unchanged.
  function pulled(held, places, width, span, [start, end]) {
    if (held.length > 1) span = ((held[1] - held[0]) * width) / (places[1] - places[0]);
    if (!(span > 0 && span < end - start)) return null;
    const from = Math.min(Math.max(held[0] - (places[0] / width) * span, start), end - span);
    return [from, from + span];
  }

  const stacks = new Map([...document.querySelectorAll(".stack")].map((element) => [element, new Stack(element)]));

  // Figures whose charts are to be drawn: one after another, so that the page stays responsive in between.
  const wanted = new Set();
  let busy = false;
  async function drawWanted() {
    if (busy) return;
    busy = true;
    for (const figure of wanted) {
      wanted.delete(figure);
      await draw(figure);
      await new Promise((resolve) => setTimeout(resolve));
    }
    busy = false;
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
    if (figures.length <= MOST_AHEAD) idle(drawAhead);
  }
  const idle = window.requestIdleCallback ?? setTimeout;
  function drawAhead() {
    const isDone = ({ clientWidth, dataset }) => !clientWidth || "drawn" in dataset || "failed" in dataset;
    const next = figures.find((figure) => !isDone(figure));
    if (next && !busy) want([next]);
  }
  function want(asked) {
    for (const figure of asked) wanted.add(figure);
    drawWanted();
  }

  // Figures that move together are drawn together.
  const near = new IntersectionObserver((entries) => {
    const reached = entries.filter(({ isIntersecting }) => isIntersecting).map(({ target }) => target);
    const asked = reached.flatMap((figure) => stacks.get(figure.parentElement)?.figures ?? figure);
    for (const figure of asked) near.unobserve(figure);
    want(asked);
  }, { rootMargin: `${NEAR} 0px` });
  for (const figure of figures) near.observe(figure);

  // Charts of panels do not follow the width of the page by themselves. Of the widths that follow one another while one
  // is drawn, the last is drawn next.
  const widths = new ResizeObserver((entries) => {
    for (const { target: figure } of entries) {
      figure.drawing = (figure.drawing ?? Promise.resolve()).then(() => redraw(figure));
    }
  });
  async function redraw(figure) {
    if (figure.drawnWidth && figure.drawnWidth !== figure.clientWidth) await draw(figure);
  }
  for (const figure of figures) widths.observe(figure);

  dark.addEventListener("change", () => want(figures.filter((figure) => figure.view)));

  // What pictures.js needs.
  window.bufferscope = { written, panels, configuration, embed };

  // Paper has no folds: opens all of them, and afterwards closes those that were closed.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();
