// The series of a run as SVG: queue, round trip, window and goodput below one another, under one line of time.

import type { Colours } from "./colours";
import { lastAt, type Column } from "./columns";
import type { Flows } from "./flows";
import type { Network } from "./network";
import { fullest } from "./stage";
import { deliveredBy, type Run } from "./run";
import type { Result } from "./session";
import { brief } from "./units";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 52;
const RIGHT = 12;
const TOP = 8;
const AXIS = 22;
const MOST_LINES = 12;
const BINS = 60;

export interface Line {
  name: string;
  colour: number;
  x: Float64Array;
  y: Float64Array;
  kind: "line" | "steps" | "dots";
  dashed?: boolean;
  /** Of the run that is compared with. */
  before?: boolean;
}

export interface Panel {
  key: "queue" | "rtt" | "cwnd" | "goodput";
  title: string;
  unit: string;
  lines: Line[];
  /** A horizontal line, such as the rate. */
  limit: number | null;
  /** Times of losses and marks, drawn at the top. */
  ticks: { t: number; kind: "drop" | "mark" }[];
  most: number;
}

/** A probe: it has no colour of the palette. */
const PROBE = -1;

/** The panels' data of a run at its port. */
export function panelsOf({ run, segments, port }: Result, flows: Flows, text: (key: string) => string): Panel[] {
  const { network } = segments[0]!;
  // Changes can add traffic, and take none away.
  const last = segments.at(-1)!.network;
  const probes = last.probesOf(port).filter((each) => run.probes.has(each.name));
  const loads = last.loads(port);
  const owned = new Set(loads.map((each) => each.name));
  const data = flows.all.filter((each) => owned.has(each.traffic) && run.flows.has(each.name));
  const shown = data.slice(0, MOST_LINES);
  const panel = (key: Panel["key"], unit: string, lines: Line[], limit: number | null = null): Panel => {
    let most = 0;
    for (const line of lines) most = Math.max(most, line.kind === "dots" ? high(line.y) : top(line.y));
    return { key, title: text(`series.${key}`), unit, lines, limit, ticks: [], most: limit !== null && limit < 1.6 * most ? Math.max(most, limit) : most };
  };
  const queue = run.ports.get(port);
  const queueLines: Line[] = queue
    ? [{ name: text("series.queue"), colour: PROBE, x: queue.t_ns.values, y: queue.packets.values, kind: "steps" }]
    : [];
  const rtts: Line[] = probes.map((each) => {
    const { sent, rtt } = run.roundTrips(each.name);
    return { name: each.name, colour: PROBE, x: sent, y: rtt.map((trip) => trip * 1e-6), kind: "dots" as const };
  });
  if (!rtts.length) {
    for (const each of shown) {
      const columns = run.flows.get(each.name)!;
      rtts.push({ name: each.name, colour: each.colour, x: columns.t_ns.values, y: scaled(columns.srtt_ns, 1e-6), kind: "line" });
    }
  }
  const windows = shown.map((each): Line => {
    const columns = run.flows.get(each.name)!;
    return { name: each.name, colour: each.colour, x: columns.t_ns.values, y: scaled(columns.cwnd, 1 / 1024), kind: "line" };
  });
  const rates = goodputs(run, flows, owned);
  const queuePanel = panel("queue", text("unit.packets"), queueLines, limitOf(network, port));
  queuePanel.ticks = ticksOf(run, port);
  queuePanel.most = Math.max(queuePanel.most, fullest(run, port));
  return [
    queuePanel,
    panel("rtt", "ms", rtts),
    panel("cwnd", "kB", windows),
    panel("goodput", "Mbit/s", rates, rateOf(network, port)),
  ];
}

function limitOf(network: Network, port: string): number | null {
  const limit = network.ports.get(port)?.limit;
  return limit && "packets" in limit ? limit.packets : null;
}

function rateOf(network: Network, port: string): number | null {
  const found = network.ports.get(port);
  return found?.rate_bps && !found.rate_varies && !found.radio ? found.rate_bps / 1e6 : null;
}

function scaled(column: Column, factor: number): Float64Array {
  return column.values.map((each) => each * factor);
}

function top(values: Float64Array): number {
  let most = 0;
  for (const each of values) if (each > most) most = each;
  return most;
}

// What nearly all dots are within: a single retransmitted probe does not flatten the rest.
function high(values: Float64Array): number {
  const sorted = values.filter((each) => Number.isFinite(each)).sort();
  if (!sorted.length) return 0;
  return Math.min(sorted.at(-1)!, 1.6 * sorted[Math.floor((sorted.length - 1) * 0.995)]!);
}

function ticksOf(run: Run, port: string): Panel["ticks"] {
  const series = run.ports.get(port);
  if (!series) return [];
  const ticks: Panel["ticks"] = [];
  for (const [key, kind] of [["dropped", "drop"], ["marked", "mark"]] as const) {
    for (let at = 1; at < series.t_ns.length; at++) {
      if (series[key].at(at) > series[key].at(at - 1)) ticks.push({ t: series.t_ns.at(at), kind });
    }
  }
  return ticks;
}

/** The goodput of each flow or, if there are many flows, of each entry of traffic. */
function goodputs(run: Run, flows: Flows, owned: Set<string>): Line[] {
  const width = run.duration_ns / BINS;
  const groups = new Map<string, { name: string; colour: number; y: Float64Array }>();
  for (const [name, columns] of run.flows) {
    const flow = flows.named(name);
    if (!flow || !owned.has(flow.traffic)) continue;
    const key = flows.areSingle ? name : flow.traffic;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { name: key, colour: flow.colour, y: new Float64Array(BINS) }));
    let before = 0;
    for (let bin = 0; bin < BINS; bin++) {
      const end = (bin + 1) * width;
      if (end > run.until_ns + width * 0.01) {
        group.y[bin] = NaN;
        continue;
      }
      const now = deliveredBy(columns, end);
      group.y[bin]! += (now - before) * (8e3 / width);
      before = now;
    }
  }
  const x = Float64Array.from({ length: BINS }, (_, bin) => (bin + 0.5) * width);
  return [...groups.values()].map((group) => ({ ...group, x, kind: "line" as const }));
}

function nice(most: number): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough)!;
  const ticks = [];
  for (let at = 0; ; at++) {
    ticks.push(at * step);
    if (at * step >= most) return ticks;
  }
}

function element<Name extends keyof SVGElementTagNameMap>(name: Name, attributes: Record<string, string | number>, text?: string): SVGElementTagNameMap[Name] {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

export interface ChartOptions {
  width: number;
  height: number;
  duration_ns: number;
  /** Where changes during the run are. */
  changes: number[];
  warmup_ns: number;
  withAxis: boolean;
}

export interface Chart {
  svg: SVGSVGElement;
  x: (t_ns: number) => number;
  t: (x: number) => number;
}

/** A panel as SVG. It needs no style sheet, so it can be saved as a file. */
export function chart(panel: Panel, options: ChartOptions, colours: Colours): Chart {
  const { width, height, duration_ns } = options;
  const bottom = height - (options.withAxis ? AXIS : 6);
  const right = width - RIGHT;
  const ticks = nice(panel.most);
  const most = ticks.at(-1)!;
  const x = (t: number): number => LEFT + ((right - LEFT) * t) / duration_ns;
  const y = (value: number): number => bottom - ((bottom - TOP) * Math.min(value, most)) / most;
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif", "font-size": 12 });
  for (const tick of ticks) {
    svg.append(element("line", { x1: LEFT, x2: right, y1: y(tick), y2: y(tick), stroke: colours.line, "stroke-width": 1 }));
    svg.append(element("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end", fill: colours.muted }, brief(tick)));
  }
  if (options.withAxis) timeAxis(svg, x, bottom, options, colours);
  if (options.warmup_ns > 0) {
    svg.append(element("rect", { x: LEFT, y: TOP, width: Math.max(0, x(options.warmup_ns) - LEFT), height: bottom - TOP, fill: colours.muted, opacity: 0.08 }));
  }
  if (panel.limit !== null && panel.limit <= most * 1.001) {
    svg.append(element("line", { x1: LEFT, x2: right, y1: y(panel.limit), y2: y(panel.limit), stroke: colours.muted, "stroke-dasharray": "6 4", "stroke-width": 1.2 }));
  }
  const ordered = [...panel.lines].sort((a, b) => Number(b.before ?? false) - Number(a.before ?? false));
  for (const line of ordered) {
    const stroke = line.colour < 0 ? colours.ink : colours.flows[line.colour]!;
    const opacity = line.before ? 0.38 : 1;
    if (line.kind === "dots") {
      svg.append(element("path", { d: dots(line, x, y), stroke, "stroke-width": line.before ? 2.5 : 3, "stroke-linecap": "round", fill: "none", opacity }));
      const lost = lostDots(line, x, TOP);
      if (lost) svg.append(element("path", { d: lost, stroke: colours.bad, "stroke-width": 1.5, fill: "none", opacity }));
    } else {
      const dash = line.before ? { "stroke-dasharray": "4 3" } : {};
      svg.append(element("path", { d: path(line, x, y), stroke, "stroke-width": line.before ? 1.2 : 1.6, "stroke-linejoin": "round", fill: "none", opacity: line.before ? 0.75 : 1, ...dash }));
    }
  }
  for (const [kind, colour] of [["mark", colours.aware], ["drop", colours.bad]] as const) {
    const d = panel.ticks.filter((tick) => tick.kind === kind).map((tick) => `M${x(tick.t).toFixed(1)} ${kind === "drop" ? TOP : TOP + 8}v6`).join("");
    if (d) svg.append(element("path", { d, stroke: colour, "stroke-width": 1.4, fill: "none" }));
  }
  for (const change of options.changes) {
    svg.append(element("line", { x1: x(change), x2: x(change), y1: TOP, y2: bottom, stroke: colours.link, "stroke-dasharray": "2 3", "stroke-width": 1.5 }));
  }
  return { svg, x, t: (at) => (Math.max(0, Math.min(1, (at - LEFT) / (right - LEFT))) * duration_ns) };
}

function timeAxis(svg: SVGSVGElement, x: (t: number) => number, bottom: number, options: ChartOptions, colours: Colours): void {
  const seconds = options.duration_ns / 1e9;
  const rough = seconds / (options.width < 480 ? 4 : 8);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough)!;
  for (let at = 0; at <= seconds + 1e-9; at += step) {
    const last = at + step > seconds + 1e-9 && seconds - at < step * 0.2;
    svg.append(element("text", { x: x(at * 1e9), y: bottom + 16, "text-anchor": at === 0 ? "start" : last ? "end" : "middle", fill: colours.muted }, `${brief(at)} s`));
  }
}

function path(line: Line, x: (t: number) => number, y: (value: number) => number): string {
  let d = "";
  let pen = false;
  for (let at = 0; at < line.x.length; at++) {
    const value = line.y[at]!;
    if (!Number.isFinite(value)) {
      pen = false;
      continue;
    }
    const [px, py] = [x(line.x[at]!).toFixed(1), y(value).toFixed(1)];
    d += pen ? (line.kind === "steps" ? `H${px}V${py}` : `L${px} ${py}`) : `M${px} ${py}`;
    pen = true;
  }
  return d;
}

function dots(line: Line, x: (t: number) => number, y: (value: number) => number): string {
  let d = "";
  for (let at = 0; at < line.x.length; at++) {
    if (Number.isFinite(line.y[at]!)) d += `M${x(line.x[at]!).toFixed(1)} ${y(line.y[at]!).toFixed(1)}h0`;
  }
  return d;
}

// Lost probes: crosses at the top.
function lostDots(line: Line, x: (t: number) => number, top: number): string {
  let d = "";
  for (let at = 0; at < line.x.length; at++) {
    if (Number.isNaN(line.y[at]!)) d += `M${(x(line.x[at]!) - 2.5).toFixed(1)} ${top}l5 5m0 -5l-5 5`;
  }
  return d;
}

/** The value of a line at a time: of the last sample. */
export function valueAt(line: Line, t: number): number {
  const at = lastAt(line.x, line.kind === "line" && line.x.length === BINS ? t + (line.x[0] ?? 0) : t);
  return at < 0 ? NaN : line.y[at]!;
}
