// The charts on the page: drawn anew when data come, and a line of time over all of them that follows the picture.

import type { Colours } from "./colours";
import { chart, valueAt, type Chart, type Panel } from "./series";
import { t } from "./texts";
import { brief } from "./units";

const HEIGHT = 128;
const AXIS = 20;
const MOST_READOUTS = 4;

export interface GraphData {
  panels: Panel[];
  duration_ns: number;
  warmup_ns: number;
  changes: number[];
}

export class Graphs {
  charts: { svg: SVGSVGElement; title: string }[] = [];
  private drawn: { panel: Panel; chart: Chart; cursor: SVGLineElement; readout: HTMLElement }[] = [];
  private data: GraphData | null = null;
  private rows: { root: HTMLElement; title: HTMLElement; readout: HTMLElement; box: HTMLElement }[] = [];

  /** `seek` is called with the time that a reader points at. */
  constructor(
    private readonly into: HTMLElement,
    private readonly seek: (t_ns: number) => void,
  ) {
    let held = false;
    into.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !(event.target instanceof Element) || !event.target.closest("svg")) return;
      held = true;
      into.setPointerCapture(event.pointerId);
      this.point(event);
    });
    into.addEventListener("pointermove", (event) => held && this.point(event));
    const release = (): void => void (held = false);
    into.addEventListener("pointerup", release);
    into.addEventListener("pointercancel", release);
    new ResizeObserver(() => this.data && this.draw(this.data, this.colours!)).observe(into);
  }

  private colours: Colours | null = null;
  private width = 0;

  private point(event: PointerEvent): void {
    const first = this.drawn[0];
    if (!first) return;
    // The column of charts that the pointer is in; the page may be zoomed.
    const under = this.drawn.find(({ chart: each }) => {
      const { left, right } = each.svg.getBoundingClientRect();
      return event.clientX >= left && event.clientX <= right;
    });
    const { left, width } = under?.chart.svg.getBoundingClientRect() ?? first.chart.svg.getBoundingClientRect();
    this.seek(first.chart.t(((event.clientX - left) * this.width) / width));
  }

  draw(data: GraphData, colours: Colours): void {
    this.data = data;
    this.colours = colours;
    this.rows.slice(data.panels.length).forEach((row) => row.root.remove());
    this.rows.length = Math.min(this.rows.length, data.panels.length);
    while (this.rows.length < data.panels.length) {
      const root = document.createElement("figure");
      root.className = "chart";
      const caption = document.createElement("figcaption");
      const title = document.createElement("h3");
      const readout = document.createElement("span");
      readout.className = "readout";
      caption.append(title, readout);
      const box = document.createElement("div");
      root.append(caption, box);
      this.into.append(root);
      this.rows.push({ root, title, readout, box });
    }
    this.width = this.rows[0]?.box.clientWidth ?? 0;
    if (this.width < 50) return;
    this.drawn = data.panels.map((panel, at) => {
      const row = this.rows[at]!;
      const columns = getComputedStyle(this.into).gridTemplateColumns.split(" ").length;
      const withAxis = at >= data.panels.length - columns;
      const made = chart(panel, { width: this.width, height: HEIGHT + (withAxis ? AXIS : 0), duration_ns: data.duration_ns, changes: data.changes, warmup_ns: data.warmup_ns, withAxis }, colours);
      row.title.textContent = `${panel.title} (${panel.unit})`;
      const svg = made.svg;
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", describe(panel));
      const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [key, value] of Object.entries({ y1: 4, y2: HEIGHT - 4, stroke: colours.link, "stroke-width": 1.5, "data-live": "" })) cursor.setAttribute(key, String(value));
      svg.append(cursor);
      row.box.replaceChildren(svg);
      return { panel, chart: made, cursor, readout: row.readout };
    });
    this.charts = this.drawn.map(({ panel, chart: made }) => ({ svg: made.svg, title: `${panel.title} (${panel.unit})` }));
  }

  /** Moves the line of time, and writes the values there. */
  show(t_ns: number, colours: Colours): void {
    for (const { panel, chart: made, cursor, readout } of this.drawn) {
      const x = made.x(t_ns).toFixed(1);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      const parts = panel.lines.slice(0, 2 * MOST_READOUTS).filter((line) => !line.before).slice(0, MOST_READOUTS);
      while (readout.children.length > parts.length) readout.lastElementChild!.remove();
      while (readout.children.length < parts.length) readout.append(document.createElement("span"));
      parts.forEach((line, at) => {
        const value = valueAt(line, t_ns);
        const name = panel.key === "queue" ? "" : `${line.name} `;
        const element = readout.children[at] as HTMLElement;
        const text = `${name}${Number.isFinite(value) ? brief(value) : "–"}`;
        if (element.textContent !== text) element.textContent = text;
        element.style.borderColor = line.colour < 0 ? colours.ink : colours.flows[line.colour]!;
      });
    }
  }
}

/** A chart in words. */
function describe(panel: Panel): string {
  const values = panel.lines.filter((line) => !line.before).map((line) => {
    const finite = line.y.filter((each) => Number.isFinite(each)).sort();
    if (!finite.length) return t("chart.none", { name: line.name });
    const middle = finite[Math.floor((finite.length - 1) / 2)]!;
    return t("chart.words", { name: line.name, median: brief(middle), max: brief(finite.at(-1)!), unit: panel.unit });
  });
  return `${panel.title}: ${values.slice(0, 6).join("; ")}`;
}
