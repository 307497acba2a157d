// The network as a drawing: nodes from left to right, each direction of a link that can be looked at as a button.

import type { Port } from "../core/protocol";
import type { Network } from "./network";
import { t } from "./texts";
import { rateWords, timeWords } from "./units";
import { disciplineName } from "./controls";

const SVG = "http://www.w3.org/2000/svg";
const TOP = 12;
/** Nodes that a drawing has at most: those nearest to the watched port. */
const MOST_NODES = 60;

/** The nodes in columns: by their distance from the one at the left end. */
function columnsOf(network: Network, watched: string): string[][] {
  const { nodes } = network.opened.network;
  const neighbours = new Map<string, string[]>(nodes.map((node) => [node.name, []]));
  for (const link of network.opened.network.links) {
    neighbours.get(link.ends[0])?.push(link.ends[1]);
    neighbours.get(link.ends[1])?.push(link.ends[0]);
  }
  const main = network.loads(watched)[0] ?? network.opened.traffic[0];
  const start = main?.from ?? nodes[0]?.name ?? "";
  const distance = new Map([[start, 0]]);
  for (const node of distance.keys()) {
    for (const next of neighbours.get(node) ?? []) if (!distance.has(next)) distance.set(next, distance.get(node)! + 1);
  }
  // Hosts at the far end of the watched port are at the right; hosts that send beside the first are at the left.
  const sources = new Set(network.loads(watched).map((each) => each.from));
  for (const node of distance.keys()) if (sources.has(node) && (neighbours.get(node)?.length ?? 0) === 1) distance.set(node, 0);
  const drawn = nodes.length > MOST_NODES ? nearest(network, watched, neighbours) : null;
  const columns: string[][] = [];
  for (const node of nodes) {
    if (drawn && !drawn.has(node.name)) continue;
    const at = distance.get(node.name) ?? 0;
    (columns[at] ??= []).push(node.name);
  }
  return columns.filter((column) => column?.length);
}

/** The nodes nearest to a port. */
function nearest(network: Network, watched: string, neighbours: Map<string, string[]>): Set<string> {
  const found = new Set(network.endsOf(watched));
  // A set is walked in the order in which it grows.
  for (const node of found) {
    for (const next of neighbours.get(node) ?? []) if (found.size < MOST_NODES) found.add(next);
  }
  return found;
}

function portWords(port: Port): string {
  const rate = port.rate_bps === null ? t("drawing.unlimited") : rateWords(port.rate_bps);
  const queue = port.qdisc === null ? "" : `, ${disciplineName(port.qdisc)}${port.limit_text ? ` ${port.limit_text}` : ""}`;
  return `${rate}, ${timeWords(port.delay_ns)}${queue}`;
}

/** Draws the network; `choose` is called with the name of a port to look at. */
export function drawNetwork(into: HTMLElement, network: Network, watched: string, choose: (port: string) => void): void {
  const columns = columnsOf(network, watched);
  const width = Math.max(300, into.clientWidth);
  const narrow = width < 620;
  const rows = Math.max(...columns.map((column) => column.length));
  const rowHeight = 58;
  const height = TOP + rows * rowHeight;
  const place = new Map<string, { x: number; y: number; half: number }>();
  const room = width / columns.length;
  const longest = Math.max(...columns.flat().map((name) => name.length));
  const box = Math.min(narrow ? room * 0.66 : 140, Math.max(44, longest * (narrow ? 6.8 : 8.6) + (narrow ? 8 : 20)));
  columns.forEach((column, at) => {
    column.forEach((name, row) => {
      const x = columns.length === 1 ? width / 2 : box / 2 + 2 + (at * (width - box - 4)) / (columns.length - 1);
      const y = TOP + ((row + 0.5) * rows * rowHeight) / column.length - 12;
      place.set(name, { x, y, half: box / 2 });
    });
  });
  const focused = document.activeElement instanceof Element && into.contains(document.activeElement) ? document.activeElement.getAttribute("data-port") : null;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", t("drawing"));
  const make = (name: string, attributes: Record<string, string | number>, parent: Element = svg, text?: string): SVGElement => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  for (const port of network.opened.network.ports) {
    const [from, to] = network.endsOf(port.name);
    const [a, b] = [place.get(from), place.get(to)];
    if (!a || !b) continue;
    const rightwards = b.x > a.x || (b.x === a.x && b.y > a.y);
    const offset = rightwards ? -5 : 5;
    const sign = Math.sign(b.x - a.x) || 0;
    const start = { x: a.x + sign * a.half, y: a.y + offset };
    const end = { x: b.x - sign * b.half, y: b.y + offset };
    const isWatched = port.name === watched;
    const group = make("g", { class: `port${isWatched ? " watched" : ""}`, tabindex: 0, role: "button", "aria-pressed": String(isWatched), "data-port": port.name });
    make("title", {}, group, `${port.name}: ${portWords(port)}`);
    const length = Math.hypot(end.x - start.x, end.y - start.y) || 1;
    const [ux, uy] = [(end.x - start.x) / length, (end.y - start.y) / length];
    make("line", { class: "hit", x1: start.x, y1: start.y, x2: end.x, y2: end.y }, group);
    make("line", { class: "wire", x1: start.x, y1: start.y, x2: end.x - 7 * ux, y2: end.y - 7 * uy }, group);
    make("path", { class: "head", d: `M${end.x} ${end.y}L${end.x - 9 * ux + 4.5 * uy} ${end.y - 9 * uy - 4.5 * ux}L${end.x - 9 * ux - 4.5 * uy} ${end.y - 9 * uy + 4.5 * ux}Z` }, group);
    const act = (): void => choose(port.name);
    group.addEventListener("click", act);
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        act();
      }
    });
    const gap = Math.abs(end.x - start.x);
    const other = network.other(port);
    if (port.rate_bps !== null && gap > 44 && (rightwards || (rows === 1 && other?.rate_bps !== port.rate_bps))) {
      const label = gap > 84 ? rateWords(port.rate_bps) : rateWords(port.rate_bps).replace("bit/s", "");
      const y = (start.y + end.y) / 2 + (rightwards ? -8 : 18);
      make("text", { class: `rate${isWatched ? " watched" : ""}`, x: (start.x + end.x) / 2, y, "text-anchor": "middle" }, svg, label);
    }
  }
  const [sender, receiver] = network.endsOf(watched);
  for (const [name, at] of place) {
    const role = name === sender ? "holds" : name === receiver ? "gets" : "";
    make("rect", { class: `node ${role}`, x: at.x - at.half, y: at.y - 15, width: 2 * at.half, height: 30, rx: isEnd(network, name) ? 5 : 15 });
    const most = Math.floor((2 * at.half - 6) / (narrow ? 6 : 7.6));
    make("text", { class: narrow ? "name narrow" : "name", x: at.x, y: at.y + 5, "text-anchor": "middle" }, svg, name.length > most ? `${name.slice(0, Math.max(1, most - 1))}…` : name);
  }
  // The magnified part below: lines from the port's device to the edges of the picture of its queue.
  const at = place.get(sender);
  if (at) {
    make("path", { class: "zoom", d: `M${at.x - at.half + 6} ${at.y + 15}L2 ${height}M${at.x + at.half - 6} ${at.y + 15}L${width - 2} ${height}` });
  }
  into.replaceChildren(svg);
  const more = network.opened.network.nodes.length - place.size;
  if (more > 0) {
    const words = document.createElement("p");
    words.className = "hint";
    words.textContent = t("drawing.more", { count: more });
    into.append(words);
  }
  if (focused) into.querySelector<SVGElement>(`[data-port="${CSS.escape(focused)}"]`)?.focus();
}

function isEnd(network: Network, node: string): boolean {
  return network.degree(node) === 1;
}
