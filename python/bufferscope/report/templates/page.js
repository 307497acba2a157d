// Turns each figure's still into an interactive chart, in the page's colours. Without this script the stills stay.
(() => {
  "use strict";
  const NARROW = 460;
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll("figure")];

  // On a phone a legend's entries stand below each other instead of leaving the page.
  function configuration(figure) {
    const config = structuredClone(themes[dark.matches ? "dark" : "light"]);
    if (figure.clientWidth < NARROW) {
      Object.assign(config.legend, { columns: 2, titleOrient: "top", layout: { top: { direction: "vertical" } } });
      config.axisX = { ...config.axisX, tickCount: 5 };
    }
    return config;
  }

  async function draw(figure) {
    const spec = JSON.parse(figure.querySelector("script.spec").textContent);
    const target = figure.querySelector(".live");
    figure.classList.add("is-live");
    try {
      figure.view?.finalize();
      const options = { mode: "vega-lite", actions: false, renderer: "canvas", config: configuration(figure) };
      options.tooltip = { theme: dark.matches ? "dark" : "light" };
      figure.view = (await vegaEmbed(target, spec, options)).view;
      figure.dataset.drawn = "";
    } catch (error) {
      figure.classList.remove("is-live");
      console.error(figure.id, error);
    }
  }

  // One after the other, the page stays responsive in between.
  let turn = 0;
  async function drawAll() {
    const mine = ++turn;
    for (const figure of figures) {
      if (mine !== turn) return;
      await draw(figure);
      await new Promise((resolve) => setTimeout(resolve));
    }
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  }

  dark.addEventListener("change", drawAll);
  drawAll();

  // Paper has no fold: open all, and close again what was closed.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();
