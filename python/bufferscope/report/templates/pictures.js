// Gives each figure without files beside the page two buttons, which save its chart as SVG or PNG: with its heading, on
// white, and without what only a pointer shows.
(() => {
  "use strict";
  // Of the picture of a single chart, and of panels, in pixels.
  const WIDTH = 640;
  const PANELS_WIDTH = 960;
  // The layers that only a pointer shows, by the beginning of their names in figures/pointer.py and figures/zooming.py.
  const FOR_THE_POINTER = ["hover", "crosshair", "drag"].map((name) => `[class*=" ${name}"]`).join();
  // Pixels of a PNG for each pixel of the SVG, so that it is sharp on screens with a high density.
  const SCALE = 2;
  const { written, panels, configuration, embed } = window.bufferscope;

  async function drawn(figure) {
    const spec = await written(figure);
    const width = spec.concat ? PANELS_WIDTH : WIDTH;
    if (spec.concat) panels(spec, width);
    else Object.assign(spec, { width, autosize: "pad" });
    const [heading, caption] = ["h3", "figcaption p"].map((each) => figure.querySelector(each).textContent);
    spec.title = { text: heading, subtitle: lines(caption, width) };
    const config = { ...configuration(spec, width, "light"), background: "#ffffff" };
    const options = { mode: "vega-lite", actions: false, renderer: "svg", config };
    return (await embed(document.createElement("div"), spec, options)).view;
  }

  // A text broken at blanks. A letter of it takes about six pixels.
  function lines(text, width) {
    const found = [""];
    for (const word of text.split(" ")) {
      if (6 * (found.at(-1).length + word.length) > width) found.push("");
      found.push(`${found.pop()} ${word}`.trimStart());
    }
    return found;
  }

  async function svg(view) {
    const picture = new DOMParser().parseFromString(await view.toSVG(), "image/svg+xml");
    for (const each of picture.querySelectorAll(FOR_THE_POINTER)) each.remove();
    return new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });
  }

  async function png(view) {
    const canvas = await view.toCanvas(SCALE);
    return new Promise((made) => { canvas.toBlob(made, "image/png"); });
  }

  async function save(figure, kind) {
    const view = await drawn(figure);
    const url = URL.createObjectURL(await (kind === "svg" ? svg(view) : png(view)));
    view.finalize();
    Object.assign(document.createElement("a"), { href: url, download: `${figure.id}.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  for (const figure of document.querySelectorAll("figure")) {
    const files = figure.querySelector(".files");
    if (files.querySelector("a")) continue;
    for (const kind of ["svg", "png"]) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: kind.toUpperCase() });
      button.addEventListener("click", () => save(figure, kind));
      files.append(button);
    }
  }
})();
