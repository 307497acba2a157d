// What the page and its worker say to each other.
//
// Times are nanoseconds since the start of the run, in doubles, which hold integers exactly up to 2^53 (104 days).
// Columns are typed arrays that are transferred, not copied. NaN in a column: the quantity was not measured.

/** A run that the page asks for. A newer request replaces an older one, which then ends without `done`. */
export interface RunRequest {
  kind: "run";
  /** Chosen by the page, larger than all before. Every answer repeats it. */
  id: number;
  /** The text of the experiment's file. */
  toml: string;
  /** The contents of files that the experiment names (traces), by name. */
  files?: Record<string, string>;
  /** Index of the point, if the experiment has a sweep; default 0. */
  point?: number;
  /** Number of the population's member, if the experiment has a population; default: the seed, as in other runs. */
  member?: number;
  /** Overrides as for `--set`, such as "link.line.rate=1mbit". */
  sets: string[];
  /** Changes during the run. */
  changes: { at_ns: number; sets: string[] }[];
  seed: number;
  /** Names of the ports whose packets are logged, such as "h1>r1". Unknown names are ignored. */
  watch: string[];
  /** The part of the run whose packets are logged; default: all of it, as far as the log's room goes. */
  packets_from_ns?: number;
  packets_until_ns?: number;
  /** Another duration than the experiment's. */
  duration_ns?: number;
  /** Only check the file and describe it (`opened` or `refused`), without a run. */
  only_open?: boolean;
}

/** Asks for the JSON Schema of experiment files. */
export interface SchemaRequest {
  kind: "schema";
  id: number;
}

/** Stops the run, if there is one. */
export interface CancelRequest {
  kind: "cancel";
}

export type Request = RunRequest | SchemaRequest | CancelRequest;

export interface Port {
  /** "h1>r1" */
  name: string;
  /** The name of its link. */
  link: string;
  /** null: packets pass without being serialised, so nothing queues. A rate that changes: the first. */
  rate_bps: number | null;
  /** Every step of the rate in time; one entry if it is constant. */
  rate_steps: { from_ns: number; bps: number }[];
  /** Whether the rate changes: in steps, or as a trace or a random process does. `Chunk.capacity` has the rates. */
  rate_varies: boolean;
  delay_ns: number;
  /** The name of the queueing discipline; null without a rate. */
  qdisc: string | null;
  /** The parameters of the discipline, all defaults filled in, as the resolved scenario has them. */
  queue: Record<string, unknown> | null;
  /** The discipline's limit: packets or bytes, one of the two; null without a rate or a limit. */
  limit: { packets: number } | { bytes: number } | null;
  /** "1000 packets", "64000 bytes", or "" */
  limit_text: string;
  has_ring: boolean;
  /** Whether the port is part of a radio channel (Wi-Fi). */
  radio: boolean;
  /** The port in whose queue its packets wait, if it is another one: on the air, an access point may have one queue for all stations. */
  queue_of: string | null;
}

export interface Traffic {
  name: string;
  /** tcp, ping, web, udp, voip, dns, irtt, netalyzr or bittorrent */
  kind: string;
  from: string;
  to: string;
  /** Flows (tcp, udp), peers (bittorrent); otherwise 1. */
  count: number;
  /** null unless it is tcp, web or bittorrent. */
  congestion_control: string | null;
  start_ns: number;
  stop_ns: number;
}

/** The experiment is valid. The first answer to a run. */
export interface Opened {
  kind: "opened";
  id: number;
  title: string;
  description: string | null;
  /** Points of the sweep; a single one with an empty label if there is none. */
  points: { label: string; /** Path and label of each swept key. */ values: [string, string][] }[];
  point: number;
  /** Number of members of the population; null without one. */
  members: number | null;
  duration_ns: number;
  warmup_ns: number;
  sample_interval_ns: number;
  network: {
    nodes: { name: string }[];
    links: { name: string; ends: [string, string] }[];
    /** Two for each link, in the file's order: forward, reverse. */
    ports: Port[];
  };
  traffic: Traffic[];
  /** Flows of packet logs: `flow` in a log is the index in this list. "bulk/1", or the traffic's name. Those that changes add are in it. */
  flows: string[];
  /** Notes about the file, as the command line shows them. */
  notes: string[];
}

/** The experiment, a change, or the size of the run is refused. Nothing more follows for this id. */
export interface Refused {
  kind: "refused";
  id: number;
  /** The core's own message; one line for each problem. */
  message: string;
  /** The problems one by one, where there are any. */
  problems: Problem[];
  /** What to do about the first problem, if that is known. */
  hint?: string;
  /** Where in the TOML the first problem is, from 1. */
  line?: number;
  column?: number;
}

export interface Problem {
  /** "link.bottleneck.rate"; empty: the file as a whole. */
  path: string;
  message: string;
  hint?: string;
  /** The override that caused it, if one did. */
  set?: string;
  line?: number;
  column?: number;
}

/** The samples of a port's queue. They are rows of the table `queues`; if there are too many, the extreme ones are kept. */
export interface PortSeries {
  t_ns: Float64Array;
  /** In the queueing discipline, without the ring. */
  packets: Float64Array;
  bytes: Float64Array;
  /** In the driver's ring, or in the driver of a port on the air; 0 if it has neither. */
  ring_bytes: Float64Array;
  /** Since the start, all layers together. */
  dropped: Float64Array;
  marked: Float64Array;
  /** Bytes that left the discipline since the start, link-layer overhead included. */
  sent_bytes: Float64Array;
}

/** The samples of a flow's sender: rows of the table `flows`. */
export interface FlowSeries {
  t_ns: Float64Array;
  /** Bytes; NaN over UDP. */
  cwnd: Float64Array;
  ssthresh: Float64Array;
  srtt_ns: Float64Array;
  /** Bytes of payload in flight. */
  inflight: Float64Array;
  /** Bytes of payload acknowledged (over UDP: arrived) since the start. */
  delivered: Float64Array;
  pacing_bps: Float64Array;
  /** Segments retransmitted since the start; NaN over UDP. */
  retransmits: Float64Array;
}

/** Probes, and packets of calls and games, in the order in which their outcome was known. All are kept up to a stated number. */
export interface ProbeSeries {
  /** When it was sent. */
  t_ns: Float64Array;
  /** NaN: lost, or of a kind that is not answered (the packets of a call or a game). */
  rtt_ns: Float64Array;
  /** One-way delay of the request or of the packet of a call or a game; NaN: lost or not known. */
  owd_ns: Float64Array;
}

/** Objects that were fetched: pages, files, look-ups. */
export interface TransferSeries {
  started_ns: Float64Array;
  /** NaN: not finished within the run, or failed. */
  finished_ns: Float64Array;
  bytes: Float64Array;
}

/** The rates of a port's link: the first, and each change. */
export interface CapacitySeries {
  t_ns: Float64Array;
  rate_bps: Float64Array;
}

/** Values of `PacketLog.kind`. */
export const PacketEvent = {
  /** It arrives at the port's queueing discipline. */
  Enqueue: 0,
  /** It leaves the discipline for the driver's ring (only ports with a ring or a radio). */
  Ring: 1,
  /** Its transmission begins (on the air: has ended). */
  Transmit: 2,
  /** It arrives at the other end of the link. */
  Arrived: 3,
  /** It is dropped by the discipline or the driver, or lost on the wire. */
  Dropped: 4,
  /** The discipline has marked it (CE): comes directly before the event at which it is first seen marked, at the same time. */
  Marked: 5,
  /** It leaves the discipline for the driver of another port, whose `queue_of` is this one. */
  Elsewhere: 6,
} as const;

/** What happened to the packets of a port, in order of time. */
export interface PacketLog {
  t_ns: Float64Array;
  kind: Uint8Array;
  /**
   * Links the events of one packet at this port: counts the packets from 0. A packet of several segments (offload) that
   * the queue splits leaves as several: the last segment has its number, the others begin without `Enqueue`.
   */
  packet: Uint32Array;
  /** Index in `Opened.flows`. */
  flow: Uint16Array;
  /** Length of the IP packet; of all its segments together if they travel as one (offload). */
  bytes: Uint32Array;
  /** Set once the log is full: events from this time on are missing. Series go on. */
  truncated_at_ns?: number;
}

/** What was recorded since the chunk before. Names without anything new are left out. */
export interface Chunk {
  kind: "chunk";
  id: number;
  /** Everything up to this time has been sent; series may lag behind by one point. */
  until_ns: number;
  ports: Record<string, PortSeries>;
  flows: Record<string, FlowSeries>;
  probes: Record<string, ProbeSeries>;
  transfers: Record<string, TransferSeries>;
  capacity: Record<string, CapacitySeries>;
  packets: Record<string, PacketLog>;
}

export interface Quantiles {
  count: number;
  min: number;
  mean: number;
  /** null: a lost sample has a weight in it, so it is larger than any time that was measured. */
  p50: number | null;
  p95: number | null;
  p99: number | null;
  max: number;
}

/** Numbers of the finished run. Those of `traffic` leave the warm-up out. */
export interface Summary {
  /** Packets fully sent on a link, and events handled. */
  hops: number;
  events: number;
  wall_ms: number;
  ports: { name: string; arrived: number; sent: number; delivered: number; dropped: number; marked: number }[];
  traffic: {
    name: string;
    /** Payload delivered by its flows; null if it has none. */
    goodput_bps: number | null;
    /** Round-trip times (for a call or a game: one-way delays) of its probes; null if it has none that were answered. */
    rtt_ms: Quantiles | null;
    /** Share of its probes, or of the packets of a call or a game, that were lost; null if it has none. */
    loss: number | null;
    /** Times of its finished transfers, and how many were not finished; null if it has none. */
    transfer_ms: Quantiles | null;
    unfinished: number | null;
  }[];
  /** Warnings of the run, one sentence each. */
  warnings: string[];
  /** How many flows, probes and so on were left out of the series because there are too many; sentences. */
  left_out: string[];
  /** Of each table of the records: rows, and the sum of each numeric column (decimal digits, modulo 2^64). */
  tables: Record<string, { rows: number; sums: Record<string, string> }>;
}

export interface Done {
  kind: "done";
  id: number;
  summary: Summary;
}

export interface SchemaAnswer {
  kind: "schema";
  id: number;
  schema: Record<string, unknown>;
}

/** The worker itself failed; the client starts a new one. */
export interface Failed {
  kind: "failed";
  id: number;
  message: string;
}

export type Answer = Opened | Refused | Chunk | Done | SchemaAnswer | Failed;
