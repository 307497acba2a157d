// Made from `crates/scenario/src/qdisc` by `make reference`; edit that, not this.

/** What a queueing discipline does, whatever its parameters. */
export interface Discipline {
  /** Whether flows share a queue or few bands, have one each, or there are two with coupled AQMs (L4S). */
  queues: "shared" | "per_flow" | "coupled";
  /** What it measures to drop or mark before the queue is full; null if it does not. */
  aqm: "length" | "delay" | null;
  /** Whether there can be other disciplines inside it, which then have the queue. */
  containsOthers: boolean;
  /** The default of its key `ecn`, if it has one. */
  ecn?: boolean;
  /** The default of its key `target`, if it has one that depends on no other key. */
  target?: string;
}

/** In the order of lists. */
export const DISCIPLINES: Readonly<Record<string, Discipline>> = {
  pfifo: { queues: "shared", aqm: null, containsOthers: false },
  bfifo: { queues: "shared", aqm: null, containsOthers: false },
  pfifo_head_drop: { queues: "shared", aqm: null, containsOthers: false },
  pfifo_fast: { queues: "shared", aqm: null, containsOthers: false },
  red: { queues: "shared", aqm: "length", containsOthers: false, ecn: false },
  choke: { queues: "shared", aqm: "length", containsOthers: false, ecn: false },
  sfq: { queues: "per_flow", aqm: null, containsOthers: false, ecn: false },
  codel: { queues: "shared", aqm: "delay", containsOthers: false, ecn: false, target: "5ms" },
  fq_codel: { queues: "per_flow", aqm: "delay", containsOthers: false, ecn: true, target: "5ms" },
  pie: { queues: "shared", aqm: "delay", containsOthers: false, ecn: false, target: "15ms" },
  fq_pie: { queues: "per_flow", aqm: "delay", containsOthers: false, ecn: false, target: "15ms" },
  dualpi2: { queues: "coupled", aqm: "delay", containsOthers: false },
  cake: { queues: "per_flow", aqm: "delay", containsOthers: false },
  fq: { queues: "per_flow", aqm: null, containsOthers: false },
  tbf: { queues: "shared", aqm: null, containsOthers: true },
  htb: { queues: "shared", aqm: null, containsOthers: true },
  prio: { queues: "shared", aqm: null, containsOthers: true },
  netem: { queues: "shared", aqm: null, containsOthers: true, ecn: false },
};
