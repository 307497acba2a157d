// The controls: each reads its value from the experiment, and writes a `path=value`.

import type { Opened, Port, Traffic } from "../core/protocol";
import { DISCIPLINES } from "./disciplines";
import { pathOf, written, type Document, type Table, isTable } from "./document";
import { measures, type Network } from "./network";
import { t } from "./texts";
import { brief, packetsOf, rateOf, rateText, rateWords, sizeOf, sizeWords, timeOf, timeText, timeWords } from "./units";

/** The part of the picture that a control governs. */
export type Part = "sender" | "shaper" | "queue" | "line" | "air";

interface Base {
  id: string;
  part: Part;
  label: string;
  /** Whether it can change during a run; the others apply to the whole run. */
  changes: boolean;
  /** A short explanation. */
  about?: string;
}

export interface Slider extends Base {
  kind: "slider";
  /** Positions are logarithmic between these unless `linear`. */
  least: number;
  most: number;
  linear?: boolean;
  value: number;
  words: (value: number) => string;
  /** Rounds a position to what can be written. An empty value leaves the path as the file has it. */
  round: (value: number) => number;
  sets: (value: number) => [path: string, value: string][];
}

export interface Choice extends Base {
  kind: "choice";
  value: string;
  options: [value: string, label: string][];
  sets: (value: string) => [path: string, value: string][];
}

export interface Switch extends Base {
  kind: "switch";
  value: boolean;
  sets: (value: boolean) => [path: string, value: string][];
}

export type Control = Slider | Choice | Switch;

export const CONGESTION = ["reno", "cubic", "vegas", "westwood", "ledbat", "ledbat++", "bbr", "bbr3", "dctcp", "prague"];
/** The disciplines that a reader may choose for a port: those that have the queue themselves. */
const OFFERED = Object.keys(DISCIPLINES).filter((name) => !DISCIPLINES[name]!.containsOthers);
/** RFC 9332, appendix A.1: the target of `dualpi2` unless other keys say otherwise. */
const DUALPI2_TARGET = 15e6;
/** Disciplines without a slider for the limit: they have no such key, or the limit does not say how long packets wait. */
const WITHOUT_LIMIT = new Set(["cake", "pfifo_fast", "htb", "prio", "tbf", "fq", "choke"]);
const FULL_FRAME = 1514;

/** A number with two significant digits. */
const two = (value: number): number => Number(value.toPrecision(2));

/** The controls of what is around a port. `document` is the file as the run has it, `base` as it was before any change. */
export function controlsOf(opened: Opened, network: Network, document: Document, base: Document, watched: string): Control[] {
  const port = network.ports.get(watched);
  if (!port) return [];
  const loads = network.loads(watched);
  return [
    ...loads.slice(0, 3).flatMap((traffic) => senderControls(traffic, loads, document)),
    ...offload(network, loads, document),
    ...shaper(port, network, loads, document),
    ...queueControls(port, network, document),
    ...ringControls(port, network, document, base),
    ...airControls(port, document),
    ...lineControls(opened, port, network, loads, document),
  ];
}

function senderControls(traffic: Traffic, loads: readonly Traffic[], document: Document): Control[] {
  const { name } = traffic;
  const many = loads.length > 1;
  const label = (key: "control.flows" | "control.congestion" | "control.ecn"): string => (many ? `${name}: ${t(key)}` : t(key));
  if (traffic.kind !== "tcp") return [];
  const found: Control[] = [];
  const isEndless = document.get("traffic", name, "bytes") === undefined;
  found.push({
    kind: "slider",
    id: `flows:${name}`,
    part: "sender",
    label: label("control.flows"),
    changes: isEndless,
    least: 0,
    most: 32,
    linear: true,
    value: traffic.count,
    words: (value) => (value === 1 ? t("control.flows.one") : t("control.flows.many", { count: value })),
    round: Math.round,
    sets: (value) => [[pathOf("traffic", name, "flows"), String(value)]],
  });
  const known = traffic.congestion_control !== null && CONGESTION.includes(traffic.congestion_control);
  if (known) {
    found.push({
      kind: "choice",
      id: `congestion:${name}`,
      part: "sender",
      label: label("control.congestion"),
      changes: false,
      value: traffic.congestion_control!,
      options: CONGESTION.map((each) => [each, NAMES[each] ?? each]),
      sets: (value) => [[pathOf("traffic", name, "congestion"), JSON.stringify(value)]],
    });
    if (traffic.congestion_control !== "dctcp" && traffic.congestion_control !== "prague") {
      found.push({
        kind: "switch",
        id: `ecn:${name}`,
        part: "sender",
        label: label("control.ecn"),
        changes: false,
        value: document.get("traffic", name, "ecn") === true,
        sets: (value) => [[pathOf("traffic", name, "ecn"), String(value)]],
      });
    }
  }
  return found;
}

const NAMES: Record<string, string> = {
  reno: "Reno", cubic: "CUBIC", vegas: "Vegas", westwood: "Westwood", ledbat: "LEDBAT", "ledbat++": "LEDBAT++", bbr: "BBR v1", bbr3: "BBR v3",
  dctcp: "DCTCP", prague: "Prague (L4S)", red: "RED", choke: "CHOKe", sfq: "SFQ", codel: "CoDel", fq_codel: "FQ-CoDel", pie: "PIE",
  fq_pie: "FQ-PIE", dualpi2: "DualPI2 (L4S)", cake: "CAKE", fq: "fq",
};

export function disciplineName(name: string): string {
  return Object.hasOwn(NAMES, name) ? NAMES[name]! : name;
}

function offload(network: Network, loads: readonly Traffic[], document: Document): Control[] {
  if (!loads.some((each) => each.kind === "tcp")) return [];
  // Packets of several segments cannot cross a radio channel.
  if (network.opened.network.ports.some((each) => each.radio)) return [];
  const value = document.get("tcp", "gso_max_segs");
  return [{
    kind: "switch",
    id: "offload",
    part: "sender",
    label: t("control.offload"),
    about: t("control.offload.about"),
    changes: false,
    value: typeof value === "number" && value > 1,
    sets: (on) => [["tcp.gso_max_segs", on ? "45" : "1"]],
  }];
}

// A shaper in the device before the watched port: it is slower than the line, so that the queue is where it is managed.
function shaper(port: Port, network: Network, loads: readonly Traffic[], document: Document): Control[] {
  const way = loads.map((each) => network.path(each.from, each.to)).find((path) => path.includes(port));
  const at = way?.indexOf(port) ?? -1;
  // The sender's own port is no device before the line.
  const before = at >= 2 ? way![at - 1] : undefined;
  if (!before || before.rate_bps === null || before.radio || port.rate_bps === null || before.rate_bps <= port.rate_bps) return [];
  const path = pathOf("link", before.link, network.directionOf(before), "queue");
  const queue = document.ofPort(before.link, network.directionOf(before), "queue");
  const bandwidth = isTable(queue) && queue["qdisc"] === "cake" ? rateOf(queue["bandwidth"]) : null;
  const overhead = document.ofPort(port.link, network.directionOf(port), "overhead");
  const framing = typeof overhead === "string" ? { framing: overhead } : {};
  const part = bandwidth === null ? 1.05 : bandwidth / port.rate_bps;
  const [device] = network.endsOf(before.name);
  return [{
    kind: "slider",
    id: "shaper",
    part: "shaper",
    label: t("control.shaper", { device }),
    about: t("control.shaper.about"),
    changes: true,
    least: 0.5,
    most: 1.05,
    linear: true,
    value: Math.min(1.05, part),
    words: (value) => (value > 1 ? t("control.shaper.none") : t("control.shaper.share", { share: Math.round(value * 100), rate: rateWords(value * port.rate_bps!) })),
    round: (value) => Math.round(value * 100) / 100,
    sets: (value) => [[path, value > 1
      ? written({ qdisc: "pfifo", limit: "1000p" })
      : written({ qdisc: "cake", bandwidth: rateText(value * port.rate_bps!), ...framing })]],
  }];
}

function queueControls(port: Port, network: Network, document: Document): Control[] {
  if (port.qdisc === null || port.radio) return [];
  const direction = network.directionOf(port);
  const path = pathOf("link", port.link, direction, "queue");
  const found = document.ofPort(port.link, direction, "queue");
  const table: Table = isTable(found) ? found : { qdisc: port.qdisc };
  const rate = port.rate_bps ?? 10e6;
  const known = OFFERED.includes(port.qdisc) ? DISCIPLINES[port.qdisc] : undefined;
  const about = aboutOf(port.qdisc);
  const controls: Control[] = [{
    kind: "choice",
    id: "discipline",
    part: "queue",
    label: t("control.discipline"),
    ...(about ? { about: t(`control.discipline.about.${about}`) } : {}),
    changes: true,
    value: port.qdisc,
    options: [...(known ? [] : [port.qdisc]), ...OFFERED].map((each) => [each, disciplineName(each)]),
    sets: (value) => [[path, written(newQueue(value, port, rate))]],
  }];
  const set = (key: string, value: string | number | boolean): [string, string][] => [[path, written({ ...table, qdisc: port.qdisc!, [key]: value })]];
  if (port.limit && !WITHOUT_LIMIT.has(port.qdisc)) {
    const bytes = "bytes" in port.limit;
    const waits = (value: number): string => timeWords(((bytes ? value : value * FULL_FRAME) * 8e9) / rate);
    controls.push({
      kind: "slider",
      id: "buffer",
      part: "queue",
      label: t("control.buffer"),
      changes: true,
      least: bytes ? 2048 : 2,
      most: bytes ? 16 * 1024 ** 2 : 10240,
      value: "bytes" in port.limit ? port.limit.bytes : port.limit.packets,
      words: (value) => t("control.buffer.words", { size: bytes ? sizeWords(value) : t("packets", { count: brief(value, 5) }), time: waits(value) }),
      round: (value) => Math.max(1, Math.round(value < 100 ? value : two(value))),
      sets: (value) => set("limit", bytes ? `${value}b` : `${value}p`),
    });
  }
  if (port.qdisc === "red") {
    const limit = sizeOf(table["limit"]) ?? 1e6;
    const max = sizeOf(table["max"]) ?? (sizeOf(table["min"]) ?? limit / 12) * 3;
    const least = sizeOf(table["min"]) ?? max / 3;
    controls.push({
      kind: "slider", id: "red-min", part: "queue", label: t("control.red"), about: t("control.red.about"), changes: true,
      least: 3000, most: Math.max(6000, Math.min(1e6, limit / 3)), value: least,
      words: (value) => t("control.red.words", { min: sizeWords(value), max: sizeWords(3 * value), time: timeWords((value * 8e9) / rate) }),
      round: (value) => Math.round(two(value)),
      sets: (value) => [[path, written({ ...table, qdisc: "red", min: `${value}b`, max: `${3 * value}b` })]],
    });
  }
  const target = port.qdisc === "dualpi2" ? DUALPI2_TARGET : timeOf(known?.target);
  if (target !== null && table["typical_rtt"] === undefined && table["max_rtt"] === undefined) {
    controls.push({
      kind: "slider", id: "target", part: "queue", label: t("control.target"), changes: true,
      least: 1e6, most: 200e6, value: timeOf(table["target"]) ?? target,
      words: timeWords,
      round: two,
      sets: (value) => set("target", timeText(value)),
    });
  }
  if (port.qdisc === "cake" || port.qdisc === "tbf") {
    const bandwidth = rateOf(table["bandwidth"] ?? table["rate"]);
    if (port.qdisc === "cake") {
      controls.push({
        kind: "slider", id: "bandwidth", part: "queue", label: t("control.bandwidth"), changes: true,
        least: rate / 10, most: rate * 1.05, value: bandwidth ?? rate * 1.05,
        words: (value) => (value > rate ? t("control.shaper.none") : rateWords(value)),
        round: two,
        sets: (value) => {
          const { bandwidth: _, ...rest } = table;
          return [[path, written({ ...rest, qdisc: "cake", ...(value > rate ? {} : { bandwidth: rateText(value) }) })]];
        },
      });
    }
  }
  if (known?.ecn !== undefined) {
    controls.push({
      kind: "switch", id: "queue-ecn", part: "queue", label: t("control.marks"), about: t("control.marks.about"), changes: true,
      value: (table["ecn"] ?? known.ecn) === true,
      sets: (on) => set("ecn", on),
    });
  }
  return controls;
}

/** What a reader should know of a discipline; null of those that only contain others. */
function aboutOf(qdisc: string): "tail" | "head" | "priority" | "random" | "managed" | "fair" | "both" | "coupled" | null {
  const kind = Object.hasOwn(DISCIPLINES, qdisc) ? DISCIPLINES[qdisc]! : null;
  if (!kind || kind.containsOthers) return null;
  if (kind.queues === "coupled") return "coupled";
  if (kind.queues === "per_flow") return kind.aqm ? "both" : "fair";
  if (kind.aqm) return kind.aqm === "length" ? "random" : "managed";
  return qdisc === "pfifo_head_drop" ? "head" : qdisc === "pfifo_fast" ? "priority" : "tail";
}

/** A discipline as one would set it first: with the buffer that the port had, or what the discipline requires. */
function newQueue(qdisc: string, port: Port, rate: number): Table {
  const bytes = port.limit ? ("bytes" in port.limit ? port.limit.bytes : port.limit.packets * FULL_FRAME) : 256 * 1024;
  const packets = Math.max(2, Math.round(bytes / FULL_FRAME));
  switch (qdisc) {
    case "pfifo":
    case "pfifo_head_drop":
      return { qdisc, limit: `${packets}p` };
    case "bfifo":
      return { qdisc, limit: `${Math.round(bytes)}b` };
    case "red":
      return { qdisc, limit: `${Math.max(60000, Math.round(bytes))}b`, avpkt: "1000b", bandwidth: rateText(rate) };
    case "choke":
      return { qdisc, limit: `${Math.max(40, packets)}p`, bandwidth: rateText(rate) };
    default:
      return { qdisc };
  }
}

function ringControls(port: Port, network: Network, document: Document, base: Document): Control[] {
  if (port.rate_bps === null || port.radio) return [];
  const direction = network.directionOf(port);
  const path = pathOf("link", port.link, direction, "ring");
  const ring = document.ofPort(port.link, direction, "ring");
  const table: Table = isTable(ring) ? ring : {};
  const size = isTable(ring) ? (packetsOf(ring["size"]) ?? 256) : 0;
  const controls: Control[] = [];
  // What the file itself has can be changed, but not taken away.
  const first = base.ofPort(port.link, direction, "ring");
  const own = isTable(first) ? (packetsOf(first["size"]) ?? 256) : 0;
  controls.push({
    kind: "choice", id: "ring", part: "queue", label: t("control.ring"), about: t("control.ring.about"), changes: false,
    value: size ? String(size) : "0",
    options: [
      ...(own ? [] : [["0", t("control.ring.none")] as [string, string]]),
      ...[...new Set([own, size, 64, 256, 1024])].filter(Boolean).sort((a, b) => a - b).map((each): [string, string] => [String(each), t("packets", { count: each })]),
    ],
    sets: (value) => [[path, value === "0" ? "" : written({ bql: false, ...table, size: `${value}p` })]],
  });
  if (size) {
    controls.push({
      kind: "switch", id: "bql", part: "queue", label: t("control.bql"), about: t("control.bql.about"), changes: false,
      value: table["bql"] === true,
      sets: (on) => [[path, written({ ...table, bql: on })]],
    });
  }
  return controls;
}

function airControls(port: Port, document: Document): Control[] {
  if (!port.radio) return [];
  const wifi = document.tables("wifi").find((each) => Array.isArray(each["links"]) && each["links"].includes(port.link));
  const name = wifi?.["name"];
  if (typeof name !== "string") return [];
  const queueing = wifi!["queueing"];
  const kind = isTable(queueing) && typeof queueing["kind"] === "string" ? queueing["kind"] : "mac80211";
  const above = isTable(queueing) && isTable(queueing["queue"]) ? queueing["queue"]["qdisc"] : undefined;
  const value = kind === "fifo" ? (above === "fq_codel" ? "fifo+fq_codel" : "fifo") : isTable(queueing) && queueing["airtime_fairness"] === false ? "mac80211-" : kind;
  const tables: Record<string, Table> = {
    fifo: { kind: "fifo" },
    "fifo+fq_codel": { kind: "fifo", queue: { qdisc: "fq_codel" } },
    "mac80211-": { kind: "mac80211", airtime_fairness: false },
    mac80211: { kind: "mac80211" },
  };
  return [{
    kind: "choice", id: "air", part: "air", label: t("control.air"), about: t("control.air.about"), changes: false, value,
    options: Object.keys(tables).map((each) => [each, t(`control.air.${each === "fifo+fq_codel" ? "fifo_fq" : each === "mac80211-" ? "turns" : each}` as "control.air.fifo")]),
    sets: (chosen) => [[pathOf("wifi", name, "queueing"), written(tables[chosen]!)]],
  }];
}

function lineControls(opened: Opened, port: Port, network: Network, loads: readonly Traffic[], document: Document): Control[] {
  const controls: Control[] = [];
  const direction = network.directionOf(port);
  const written = document.ofPort(port.link, direction, "rate");
  if (port.rate_bps !== null && !isTable(written)) {
    controls.push({
      kind: "slider", id: "rate", part: "line", label: t("control.rate"), changes: !port.radio,
      least: 128e3, most: 500e6, value: port.rate_bps,
      words: rateWords,
      round: two,
      sets: (value) => [[pathOf("link", port.link, direction, "rate"), JSON.stringify(rateText(value))]],
    });
  }
  const traffic = loads[0] ?? opened.traffic.find((each) => measures(each));
  const back = network.opened.network.ports.find((each) => each.link === port.link && each !== port);
  const own = document.get("link", port.link, "delay");
  const isOwn = document.get("link", port.link, "forward", "delay") === undefined && document.get("link", port.link, "reverse", "delay") === undefined;
  if (traffic && back && isOwn && !port.radio) {
    const others = network.roundTrip(traffic) - port.delay_ns - back.delay_ns;
    const least = Math.max(1e6, others + 2e3);
    controls.push({
      kind: "slider", id: "rtt", part: "line", label: t("control.rtt"), about: t("control.rtt.about"), changes: true,
      least, most: Math.max(800e6, 2 * least), value: Math.max(least, others + 2 * (timeOf(own ?? "0s") ?? port.delay_ns)),
      words: timeWords,
      round: (value) => Math.max(least, two(value)),
      sets: (value) => [[pathOf("link", port.link, "delay"), JSON.stringify(timeText(Math.max(0, (value - others) / 2)))]],
    });
  }
  return controls;
}
