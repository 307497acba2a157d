// What a reader takes along: files, and commands to copy.

import { textOf } from "./document";
import { presetText } from "../presets/index";
import { scheduled } from "./schedule";
import type { Panel } from "./series";
import { pointOf, type Result } from "./session";
import type { State } from "./state";
import { t } from "./texts";
import { exactTime } from "./units";

/** The names of exported files in commands: of the run, and of the one that it is compared with. */
export const FILE = "explorer.toml";
export const FILE_BEFORE = "explorer-before.toml";

export function save(name: string, type: string, content: BlobPart): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The experiment's file as the reader edits it: with what was set for the whole run. */
export function experimentOf(result: Result): string {
  return textOf(result.state, pointOf(result.run.opened));
}

/** What of a run its exported file and its command say, and what of it they cannot say. */
export interface Exported {
  toml: string;
  /** Overrides of the catalogue's experiment, if it is one. */
  sets: string[];
  /** What is missing; empty if they make the same run. */
  lost: string[];
}

/** What a reader should know of exported runs: what they lack, and the files that must be beside them. Empty: nothing. */
export function caveatOf(results: Result[]): string {
  const lost = new Set(results.flatMap((each) => exportOf(each).lost));
  const files = new Set(results.flatMap((each) => Object.keys(each.state.files)));
  return [
    ...(lost.size ? [t("export.lost", { what: [...lost].join("; ") })] : []),
    ...(files.size ? [t("export.files", { names: [...files].join(", ") })] : []),
  ].join(" ");
}

/** The experiment as a file of its own, with the changes during the run that a file can express. */
export function exportOf({ state, run, document }: Result): Exported {
  const point = pointOf(run.opened);
  const now = document ? scheduled(state, document, run.duration_ns) : { sets: [], lost: state.changes };
  const lost = now.lost.map((each) => t("export.lost.change", { time: exactTime(each.at_ns), sets: each.sets.join(" ") }));
  // The core has read the file, and the page could not.
  if (!document && (point.length || state.sets.length)) lost.push(...point.map(([path, label]) => `${path}=${label}`), ...state.sets);
  if (state.member !== null && state.member !== state.seed) lost.push(t("export.lost.member", { member: state.member }));
  const remark = (words: string): string => `# ${words.replace(/[\u0000-\u001f\u007f]+/g, " ")}\n`;
  const remarks = lost.length ? [t("export.lost.file"), ...lost.map((each) => `  ${each}`)].map(remark).join("") : "";
  return { toml: remarks + textOf(state, point, now.sets), sets: [...state.sets, ...now.sets], lost };
}

/** A word for a POSIX shell. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** The command that repeats the run; with a kernel's engine, that repeats it on a real kernel. `file`: the name of its exported file. */
export function commandOf(result: Result, engine: "sim" | "guest", file = FILE): string {
  const { state } = result;
  const isCatalogue = state.preset !== null && !state.preset.includes(":") && presetText(state.preset) === state.toml;
  const label = pointOf(result.run.opened);
  // A point of a sweep is chosen by what it sets; the exported file has it set already.
  const words = ["bufferscope", "run", isCatalogue && !label.length ? state.preset! : file];
  if (words[2] === state.preset) for (const set of exportOf(result).sets) words.push("--set", set);
  if (engine !== "sim") words.push("--engine", engine);
  if (state.seed !== 1) words.push("--seed", String(state.seed));
  return words.map(quoted).join(" ");
}

/** Whether the command needs the exported file beside it. */
export function needsFile(command: string): boolean {
  return command.includes(FILE) || command.includes(FILE_BEFORE);
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

/** A name for files of a state, such as `home.csv`. */
export function fileName(state: State, end: string): string {
  const stem = (state.preset ?? "explorer").replace(/^line:/, "").replace(/[^A-Za-z0-9._-]+/g, "-");
  return `${stem}.${end}`;
}
