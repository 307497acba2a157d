// What a reader takes along: files, and commands to copy.

import { textOf } from "./document";
import { presetText } from "../presets/index";
import type { Panel } from "./series";
import { pointOf, type Result } from "./session";
import type { State } from "./state";

export function save(name: string, type: string, content: BlobPart): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The experiment as a file of its own. */
export function experimentOf(result: Result): string {
  const opened = result.run.opened;
  return textOf(result.state, pointOf(opened));
}

/** A word for a POSIX shell. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** The command that repeats the run; with a kernel's engine, that repeats it on a real kernel. */
export function commandOf(result: Result, engine: "sim" | "guest"): string {
  const { state } = result;
  const isCatalogue = state.preset !== null && !state.preset.includes(":") && presetText(state.preset) === state.toml;
  const label = pointOf(result.run.opened);
  // A point of a sweep is chosen by what it sets; the exported file has it set already.
  const words = ["bufferscope", "run", isCatalogue && !label.length ? state.preset! : "explorer.toml"];
  if (words[2] === state.preset) for (const set of state.sets) words.push("--set", set);
  if (engine !== "sim") words.push("--engine", engine);
  if (state.seed !== 1) words.push("--seed", String(state.seed));
  return words.map(quoted).join(" ");
}

/** Whether the command needs the exported file beside it. */
export function needsFile(command: string): boolean {
  return command.includes("explorer.toml");
}

/** The series as CSV, one row for each value: the panel, the series, the time and the value. */
export function csvOf(panels: Panel[]): string {
  const cell = (value: string): string => (/[",\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value);
  const rows = ["panel,unit,series,t_s,value"];
  for (const panel of panels) {
    for (const line of panel.lines) {
      if (line.before) continue;
      for (let at = 0; at < line.x.length; at++) {
        const value = line.y[at]!;
        rows.push([panel.key, panel.unit, line.name, String(line.x[at]! / 1e9), Number.isFinite(value) ? String(value) : ""].map(cell).join(","));
      }
    }
  }
  return `${rows.join("\n")}\n`;
}

/** The panels below one another as one SVG file. */
export function svgOf(charts: { svg: SVGSVGElement; title: string }[], title: string, ink: string, paper: string): string {
  const SVG = "http://www.w3.org/2000/svg";
  const width = Math.max(...charts.map(({ svg }) => Number(svg.getAttribute("width"))));
  const all = document.createElementNS(SVG, "svg");
  const text = (x: number, y: number, size: number, content: string): void => {
    const made = document.createElementNS(SVG, "text");
    for (const [key, value] of Object.entries({ x, y, fill: ink, "font-size": size, "font-weight": 600, "font-family": "system-ui, sans-serif" })) made.setAttribute(key, String(value));
    made.textContent = content;
    all.append(made);
  };
  let y = 30;
  text(8, 20, 15, title);
  for (const chart of charts) {
    text(8, y + 14, 12, chart.title);
    const copy = chart.svg.cloneNode(true) as SVGSVGElement;
    for (const each of copy.querySelectorAll("[data-live]")) each.remove();
    copy.setAttribute("y", String(y + 18));
    all.append(copy);
    y += 22 + Number(chart.svg.getAttribute("height"));
  }
  for (const [key, value] of Object.entries({ xmlns: SVG, width, height: y + 6, viewBox: `0 0 ${width} ${y + 6}` })) all.setAttribute(key, String(value));
  const back = document.createElementNS(SVG, "rect");
  for (const [key, value] of Object.entries({ width: "100%", height: "100%", fill: paper })) back.setAttribute(key, value);
  all.prepend(back);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(all)}\n`;
}

/** A name for files of a state. */
export function fileName(state: State, end: string): string {
  const stem = (state.preset ?? "explorer").replace(/^line:/, "").replace(/[^A-Za-z0-9._-]+/g, "-");
  return `${stem}.${end}`;
}
