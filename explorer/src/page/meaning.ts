// What a run means for a call, a game, a page and a video: with the thresholds of `bufferscope explain`
// (bufferscope.analysis.explanation.effects and .live).

import type { Traffic } from "../core/protocol";
import { lastAt } from "./columns";
import type { Document } from "./document";
import { opinion } from "./emodel";
import type { Network } from "./network";
import { deliveredBy, quantile, type Run } from "./run";
import type { Result, Segment } from "./session";
import { sizeOf } from "./units";

export const GAME_LIMITS_NS = [30e6, 50e6] as const;
const PAGE_SEGMENTS = 70;
const INITIAL_WINDOW = 10;
export const VIDEO_BPS = { "1080p": 5e6, "4K": 15e6 } as const;
/** ITU-T G.109, table 1. */
const QUALITIES: readonly (readonly [number, string])[] = [
  [4.3, "very_satisfied"],
  [4.0, "satisfied"],
  [3.6, "some_dissatisfied"],
  [3.1, "many_dissatisfied"],
  [2.6, "nearly_all_dissatisfied"],
  [0, "not_recommended"],
];
/** Bytes that link layers add to an IP packet; an idle path needs no more exact ones. */
const OVERHEAD: Record<string, number> = { docsis: 18, ethernet: 38, "pppoe-ptm": 30, "pppoe-llcsnap": 40, conservative: 48 };
const PING_BYTES = 84;
/** Kinds of traffic whose flows last. */
const BULK = ["tcp", "udp", "bittorrent"];

export type Grade = "good" | "aware" | "bad";

export interface Meaning {
  /** Round trips of the pings that cross the port, in ns. */
  rtt: { idle: number; p50: number; p95: number; max: number; count: number; lost: number } | null;
  call: { score: number; quality: string; grade: Grade; measured: boolean } | null;
  game: { above30: number; above50: number; grade: Grade } | null;
  page: { trips: number; idle: number; loaded: number; measured: boolean; grade: Grade } | null;
  video: { bps: number; fits: string[]; grade: Grade } | null;
  /** Payload of all data over the port, and the port's mean rate: bit/s. */
  goodput: number;
  /** The goodput of each entry of traffic with load over the port. */
  parts: { name: string; bps: number }[];
  rate: number | null;
  dropped: number;
  marked: number;
}

/** The idle round trip of a probe: propagation, and its time on each wire. */
export function idleRoundTrip(run: Run, network: Network, probe: Traffic, document: Document | null, from: number, to: number): number {
  let ns = 0;
  for (const port of network.ways(probe).flat()) {
    ns += port.delay_ns;
    const rate = run.meanRate(port.name, from, to);
    if (rate === null || rate <= 0 || port.radio) continue;
    const written = document?.ofPort(port.link, network.directionOf(port), "overhead");
    const overhead = sizeOf(written) ?? (typeof written === "string" ? (OVERHEAD[written] ?? 38) : 14);
    ns += ((PING_BYTES + overhead) * 8e9) / rate;
  }
  return ns;
}

/** Round trips of a new connection: the handshake, then windows of 10, 20, 40, ... segments. */
export function roundTrips(segments: number): number {
  let trips = 1;
  for (let window = INITIAL_WINDOW; segments > 0; window *= 2) {
    segments -= window;
    trips++;
  }
  return trips;
}

/** The goodput of an entry of traffic between two times, in bit/s. */
export function goodputOf(run: Run, traffic: Traffic, from: number, to: number): number {
  let bytes = 0;
  for (const [name, flow] of run.flows) {
    if (name !== traffic.name && !name.startsWith(`${traffic.name}/`)) continue;
    bytes += deliveredBy(flow, to) - deliveredBy(flow, from);
  }
  return to > from ? (bytes * 8e9) / (to - from) : 0;
}

export function meaning({ run, segments, port, document }: Result): Meaning {
  // Changes can add traffic, and take none away.
  const { network } = segments.at(-1)!;
  const [from, to] = windowOf(run);
  const probe = network.probesOf(port).find((each) => run.probes.has(each.name));
  const loads = network.loads(port);
  const series = run.ports.get(port);
  const rtt = probe ? roundTripsOf(run, segments, probe, document, from, to) : null;
  const call = callOf(run, from, to, rtt);
  const parts = loads.map((each) => ({ name: each.name, bps: goodputOf(run, each, from, to) }));
  return {
    rtt: rtt?.numbers ?? null,
    call,
    game: rtt && rtt.numbers.count ? gameOf(rtt) : null,
    page: pageOf(run, network, rtt, from),
    video: videoOf(run, loads, from, to),
    goodput: parts.reduce((sum, each) => sum + each.bps, 0),
    parts,
    // The rate of a radio channel is not what it carries.
    rate: network.ports.get(port)?.radio ? null : run.meanRate(port, from, to),
    dropped: run.valueAt(series, "dropped", to),
    marked: run.valueAt(series, "marked", to),
  };
}

/** The part of the run after its warm-up in which flows exist that last; all of it if there are none. */
function windowOf(run: Run): [number, number] {
  const { warmup_ns, traffic } = run.opened;
  const end = Math.min(run.until_ns, run.duration_ns);
  const bulk = traffic.filter((each) => BULK.includes(each.kind)).map((each) => each.name);
  let [first, last] = [Infinity, -Infinity];
  for (const [name, flow] of run.flows) {
    const t = flow.t_ns.values;
    if (!t.length || !bulk.some((each) => name === each || name.startsWith(`${each}/`))) continue;
    const at = lastAt(t, warmup_ns - 1) + 1;
    if (at >= t.length) continue;
    first = Math.min(first, t[at]!);
    last = Math.max(last, t[t.length - 1]!);
  }
  return last > first ? [first, Math.min(last, end)] : [warmup_ns, end];
}

interface RoundTrips {
  numbers: NonNullable<Meaning["rtt"]>;
  sent: number[];
  /** Infinity: lost. */
  times: number[];
  /** What each would take on the idle path. */
  own: number[];
  /** One-way delays of the probes in ms, out and back; NaN where unknown. */
  ways: [number[], number[]];
}

function roundTripsOf(run: Run, segments: Segment[], probe: Traffic, document: Document | null, from: number, to: number): RoundTrips | null {
  const columns = run.probes.get(probe.name)!;
  // A change of the line during the run changes what an idle path would take.
  const idles = segments.map((each, at) => {
    const end = Math.min(segments[at + 1]?.from_ns ?? to, to);
    return idleRoundTrip(run, each.network, probe, document, Math.max(from, each.from_ns), Math.max(end, from + 1));
  });
  const idle = Math.min(...idles);
  const own: number[] = [];
  const sent: number[] = [];
  const times: number[] = [];
  const ways: [number[], number[]] = [[], []];
  let lost = 0;
  for (let at = 0; at < columns.t_ns.length; at++) {
    const t = columns.t_ns.at(at);
    if (t < from || t > to) continue;
    const rtt = columns.rtt_ns.at(at);
    const out = columns.owd_ns.at(at);
    sent.push(t);
    own.push(idles[segments.filter((each) => each.from_ns <= t).length - 1] ?? idle);
    if (Number.isNaN(rtt)) lost++;
    times.push(Number.isNaN(rtt) ? Infinity : rtt);
    ways[0].push(Number.isNaN(rtt) ? Infinity : (Number.isNaN(out) ? rtt / 2 : out) / 1e6);
    ways[1].push(Number.isNaN(rtt) ? Infinity : (Number.isNaN(out) ? rtt / 2 : rtt - out) / 1e6);
  }
  const sorted = Float64Array.from(times).sort();
  const answered = lastAt(sorted, Number.MAX_VALUE);
  return {
    sent,
    times,
    own,
    ways,
    numbers: {
      idle: answered >= 0 ? Math.min(idle, sorted[0]!) : idle,
      p50: quantile(sorted, 0.5),
      p95: quantile(sorted, 0.95),
      max: answered >= 0 ? sorted[answered]! : NaN,
      count: sent.length,
      lost,
    },
  };
}

function callOf(run: Run, from: number, to: number, rtt: RoundTrips | null): Meaning["call"] {
  const call = run.opened.traffic.find((each) => each.kind === "voip");
  let score = NaN;
  if (call) {
    const scores: number[] = [];
    for (const [name, columns] of run.probes) {
      if (name !== call.name && !name.startsWith(`${call.name}/`)) continue;
      const sent: number[] = [];
      const delays: number[] = [];
      for (let at = 0; at < columns.t_ns.length; at++) {
        if (columns.t_ns.at(at) < from || columns.t_ns.at(at) > to) continue;
        const delay = columns.owd_ns.at(at);
        sent.push(columns.t_ns.at(at));
        delays.push(Number.isNaN(delay) ? Infinity : delay / 1e6);
      }
      if (sent.length) scores.push(opinion(sent, delays));
    }
    score = scores.length ? Math.min(...scores) : NaN;
  }
  const measured = Number.isFinite(score);
  if (!measured && rtt?.numbers.count) score = Math.min(opinion(rtt.sent, rtt.ways[0]), opinion(rtt.sent, rtt.ways[1]));
  if (!Number.isFinite(score)) return null;
  const quality = QUALITIES.find(([least]) => score >= least)![1];
  return { score, quality, grade: score >= 4 ? "good" : score >= 3.6 ? "aware" : "bad", measured };
}

function gameOf(rtt: RoundTrips): Meaning["game"] {
  const above = (limit: number): number => rtt.times.filter((each, at) => each > rtt.own[at]! + limit).length / rtt.times.length;
  const [above30, above50] = [above(GAME_LIMITS_NS[0]), above(GAME_LIMITS_NS[1])];
  return { above30, above50, grade: above30 < 0.01 ? "good" : above50 < 0.01 ? "aware" : "bad" };
}

function pageOf(run: Run, network: Network, rtt: RoundTrips | null, from: number): Meaning["page"] {
  const trips = roundTrips(PAGE_SEGMENTS);
  const web = network.opened.traffic.find((each) => each.kind === "web" && run.transfers.has(each.name));
  if (web) {
    const columns = run.transfers.get(web.name)!;
    const times: number[] = [];
    for (let at = 0; at < columns.started_ns.length; at++) {
      const time = columns.finished_ns.at(at) - columns.started_ns.at(at);
      if (columns.started_ns.at(at) >= from && time > 0) times.push(time);
    }
    if (times.length) {
      const mean = times.reduce((sum, each) => sum + each, 0) / times.length;
      return { trips, idle: NaN, loaded: mean, measured: true, grade: pageGrade(mean) };
    }
  }
  if (!rtt?.numbers.count || !Number.isFinite(rtt.numbers.p50)) return null;
  const idle = trips * rtt.numbers.idle;
  const loaded = trips * Math.max(rtt.numbers.p50, rtt.numbers.idle);
  return { trips, idle, loaded, measured: false, grade: pageGrade(loaded, idle) };
}

// Nielsen's limits (Usability Engineering, 1993): 0.1 s more is not noticed, and a second keeps a reader's flow of thought.
function pageGrade(ns: number, idle = 0): Grade {
  if (ns - idle <= 0.1e9) return "good";
  return ns <= 1e9 ? "aware" : "bad";
}

const SECOND_NS = 1e9;

/** The longest time between two samples of some traffics' flows. */
function spacing(run: Run, loads: readonly Traffic[]): number {
  let most = 0;
  for (const [name, flow] of run.flows) {
    const { length } = flow.t_ns;
    if (length < 2 || !loads.some((each) => name === each.name || name.startsWith(`${each.name}/`))) continue;
    most = Math.max(most, (flow.t_ns.at(length - 1) - flow.t_ns.at(0)) / (length - 1));
  }
  return most;
}

// As `explain` does: what the data gets in nine of ten seconds.
function videoOf(run: Run, loads: readonly Traffic[], from: number, to: number): Meaning["video"] {
  // Samples that are farther apart than a second do not tell what a second got.
  if (!loads.length || spacing(run, loads) > SECOND_NS) return null;
  const rates: number[] = [];
  for (let t = from; t + SECOND_NS <= to; t += SECOND_NS) {
    rates.push(loads.reduce((sum, each) => sum + goodputOf(run, each, t, t + SECOND_NS), 0));
  }
  if (!rates.length) return null;
  rates.sort((a, b) => a - b);
  const bps = quantile(rates, 0.1);
  const fits = Object.entries(VIDEO_BPS).filter(([, needed]) => bps >= needed).map(([name]) => name);
  return { bps, fits, grade: fits.length ? "good" : "bad" };
}
