// The guided tours. A step sets the picture up, and knows when a reader has found the answer to its question; its words
// are in the texts, as `tour.<id>.<number>.*`.

import { DISCIPLINES } from "../page/disciplines";
import type { Reading } from "../page/tour";
import { fresh, type State } from "../page/state";
import { FIRST, presetText } from "../presets/index";
import two from "./two.toml";

export interface Step {
  /** Where the step begins; without it, where the one before ended. */
  setup?: () => State;
  /** Whether the picture that the step begins with is kept, to be compared with. */
  keep?: boolean;
  /** The controls that the question is about, by the beginnings of their names, or elements by `#id`. */
  controls?: string[];
  /** Whether the reader has found it. Without it the step asks nothing. */
  solved?: (reading: Reading) => boolean;
  /** Whether what the question asks for is there, but in another way: the page then says why that is no answer. */
  near?: (reading: Reading) => boolean;
}

export interface TourPlan {
  id: string;
  steps: readonly Step[];
}

const MS = 1e6;
const home = (...sets: string[]): State => fresh(FIRST, presetText(FIRST)!, { sets });
const shared = (...sets: string[]): State => fresh(null, two, { sets });

const portOf = ({ result }: Reading) => result.segments[0]!.network.ports.get(result.port)!;
const rate = (reading: Reading): number => reading.meaning.rate ?? 0;
const added = ({ meaning }: Reading): number => (meaning.rtt ? meaning.rtt.p95 - meaning.rtt.idle : Infinity);
/** The share of the line that the data got. */
const used = ({ meaning }: Reading): number => (meaning.rate ? meaning.goodput / meaning.rate : 0);
const discipline = (reading: Reading): string => portOf(reading).qdisc ?? "";
const isTailDrop = (reading: Reading): boolean => ["pfifo", "bfifo"].includes(discipline(reading));
const packets = (reading: Reading): number => {
  const { limit } = portOf(reading);
  return limit && "packets" in limit ? limit.packets : Infinity;
};
const flows = (reading: Reading): number => reading.result.run.opened.traffic.filter((each) => each.kind === "tcp").reduce((sum, each) => sum + each.count, 0);
const control = (reading: Reading, traffic: string): string | null => reading.result.run.opened.traffic.find((each) => each.name === traffic)?.congestion_control ?? null;
const queueNow = ({ result, t }: Reading): number => result.run.valueAt(result.run.ports.get(result.port), "packets", t);
const propagation = (reading: Reading): number => {
  const { network } = reading.result.segments[0]!;
  return network.opened.traffic[0] ? network.roundTrip(network.opened.traffic[0]) : 0;
};

/** The share of the first of two traffics in what both got, as the page shows it. */
function shareOf({ meaning }: Reading, first: string, second: string): number {
  const [a, b] = [first, second].map((name) => meaning.parts.find((each) => each.name === name)?.bps ?? NaN);
  return a! + b! > 0 ? a! / (a! + b!) : NaN;
}

const NAMES = Object.keys(DISCIPLINES);
const FAIR = NAMES.filter((name) => DISCIPLINES[name]!.queues === "per_flow");
const MANAGED = NAMES.filter((name) => DISCIPLINES[name]!.aqm === "delay");
/** Whether the queue's time is not limited, although pings pass it or find it short. */
const isUnmanaged = (reading: Reading): boolean => !MANAGED.includes(discipline(reading)) && !isTailDrop(reading);

export const TOURS: readonly TourPlan[] = [
  {
    id: "bloat",
    steps: [
      { setup: () => home(), controls: ["#play", "#time"], solved: ({ t }) => t >= 4000 * MS },
      { controls: ["#time", "#charts"], solved: (reading) => queueNow(reading) >= 190 },
      { setup: () => home(), keep: true, controls: ["rate"], solved: (reading) => rate(reading) >= 20e6 },
      { setup: () => home(), keep: true, controls: ["buffer"], solved: (reading) => isTailDrop(reading) && added(reading) <= 40 * MS },
      { setup: () => home(), keep: true, controls: ["discipline"], solved: (reading) => MANAGED.includes(discipline(reading)) && added(reading) <= 40 * MS && used(reading) > 0.9, near: (reading) => isUnmanaged(reading) && added(reading) <= 40 * MS },
      { controls: ["discipline", "flows"], near: (reading) => flows(reading) >= 4 && !FAIR.includes(discipline(reading)), solved: (reading) => flows(reading) >= 4 && FAIR.includes(discipline(reading)) },
    ],
  },
  {
    id: "size",
    steps: [
      { setup: () => home("traffic.photos.congestion=reno"), keep: true, controls: ["buffer"], solved: (reading) => isTailDrop(reading) && packets(reading) <= 25 && used(reading) >= 0.9 },
      { keep: true, controls: ["rtt"], solved: (reading) => propagation(reading) >= 90 * MS },
      { keep: true, controls: ["buffer"], solved: (reading) => propagation(reading) >= 90 * MS && isTailDrop(reading) && used(reading) >= 0.9 },
      { keep: true, controls: ["flows", "buffer"], solved: (reading) => propagation(reading) >= 90 * MS && flows(reading) >= 8 && packets(reading) <= 45 && used(reading) >= 0.9 },
      { setup: () => home(), keep: true, controls: ["rate"], solved: (reading) => rate(reading) <= 2.1e6 && added(reading) > 500 * MS },
      { keep: true, controls: ["discipline"], solved: (reading) => rate(reading) <= 2.1e6 && MANAGED.includes(discipline(reading)) && added(reading) <= 150 * MS, near: (reading) => rate(reading) <= 2.1e6 && isUnmanaged(reading) && added(reading) <= 150 * MS },
    ],
  },
  {
    id: "red",
    steps: [
      { setup: () => home(RED), keep: true, controls: ["red-min"], solved: (reading) => discipline(reading) === "red" && added(reading) <= 60 * MS && used(reading) >= 0.9 },
      { keep: true, controls: ["rate"], solved: (reading) => discipline(reading) === "red" && rate(reading) <= 1.1e6 && added(reading) > 150 * MS },
      { controls: ["rate"], solved: (reading) => discipline(reading) === "red" && rate(reading) >= 90e6 },
      { controls: ["discipline", "rate"], solved: (reading) => discipline(reading) === "codel" && rate(reading) <= 1.1e6 },
    ],
  },
  {
    id: "fair",
    steps: [
      { setup: () => home("traffic.photos.flows=4"), controls: ["#time", "#charts"], solved: (reading) => queueNow(reading) >= 150 },
      { keep: true, controls: ["discipline"], solved: (reading) => ["codel", "pie"].includes(discipline(reading)) },
      { keep: true, controls: ["flows"], solved: (reading) => ["codel", "pie"].includes(discipline(reading)) && flows(reading) >= 16, near: (reading) => flows(reading) >= 16 },
      { keep: true, controls: ["discipline"], solved: (reading) => FAIR.includes(discipline(reading)) && flows(reading) >= 16 && added(reading) <= 20 * MS },
    ],
  },
  {
    id: "bbr",
    steps: [
      { setup: () => home(), keep: true, controls: ["congestion"], solved: (reading) => ["bbr", "bbr3"].includes(control(reading, "photos") ?? "") },
      { setup: () => shared(), controls: ["buffer"], solved: (reading) => isTailDrop(reading) && shareOf(reading, "bbr", "cubic") < 0.4 },
      { keep: true, controls: ["buffer"], solved: (reading) => isTailDrop(reading) && shareOf(reading, "bbr", "cubic") > 0.6 },
      { keep: true, controls: ["discipline"], solved: (reading) => FAIR.includes(discipline(reading)) && Math.abs(shareOf(reading, "bbr", "cubic") - 0.5) < 0.1 },
    ],
  },
  {
    id: "l4s",
    steps: [
      { setup: () => l4s('{ qdisc = "codel", ecn = true }'), controls: ["#time", "#charts"], solved: ({ t }) => t >= 5000 * MS },
      { keep: true, controls: ["discipline"], solved: (reading) => discipline(reading) === "dualpi2" },
      { keep: true, controls: ["congestion:cubic"], solved: (reading) => discipline(reading) === "dualpi2" && control(reading, "cubic") === "prague" },
    ],
  },
];

const RED = 'link.line.forward.queue={ qdisc = "red", limit = "1000000b", avpkt = "1000b", min = "80000b", max = "240000b" }';

function l4s(queue: string): State {
  return fresh("l4s", presetText("l4s")!, { sets: [`link.bottleneck.forward.queue=${queue}`] });
}

export function tourNamed(id: string): TourPlan | undefined {
  return TOURS.find((each) => each.id === id);
}
