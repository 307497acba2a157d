// One run as it arrives from the worker.

import type { CapacitySeries, Chunk, FlowSeries, Opened, PortSeries, ProbeSeries, Summary, TransferSeries } from "../core/protocol";
import { Column, lastAt } from "./columns";
import { Track } from "./track";

/** Columns of one table, by name; those of `t_ns` ascend. */
export type Columns<T> = { [Key in keyof T]: Column };

function append<T extends object>(into: Map<string, Columns<T>>, name: string, chunk: T): void {
  let columns = into.get(name);
  if (!columns) {
    columns = Object.fromEntries(Object.keys(chunk).map((key) => [key, new Column()])) as Columns<T>;
    into.set(name, columns);
  }
  for (const [key, values] of Object.entries(chunk)) columns[key as keyof T].append(values as Float64Array);
}

export class Run {
  readonly ports = new Map<string, Columns<PortSeries>>();
  readonly flows = new Map<string, Columns<FlowSeries>>();
  readonly probes = new Map<string, Columns<ProbeSeries>>();
  readonly transfers = new Map<string, Columns<TransferSeries>>();
  readonly packets = new Map<string, Track>();
  until_ns = 0;
  summary: Summary | null = null;
  readonly capacity = new Map<string, Columns<CapacitySeries>>();

  /** `packets_from_ns`: when the log of packets begins. */
  constructor(
    readonly opened: Opened,
    private readonly packets_from_ns = 0,
  ) {}

  add(chunk: Chunk): void {
    for (const [name, series] of Object.entries(chunk.ports)) append(this.ports, name, series);
    for (const [name, series] of Object.entries(chunk.flows)) append(this.flows, name, series);
    for (const [name, series] of Object.entries(chunk.probes)) append(this.probes, name, series);
    for (const [name, series] of Object.entries(chunk.transfers)) append(this.transfers, name, series);
    for (const [name, series] of Object.entries(chunk.capacity)) append(this.capacity, name, series);
    for (const [name, log] of Object.entries(chunk.packets)) {
      let track = this.packets.get(name);
      if (!track) this.packets.set(name, (track = new Track(this.packets_from_ns)));
      track.add(log);
    }
    this.until_ns = chunk.until_ns;
  }

  get duration_ns(): number {
    return this.opened.duration_ns;
  }

  private readonly ordered = new Map<string, { sent: Float64Array; rtt: Float64Array }>();

  /** A prober's round trips in the order of sending; they arrive in the order in which their outcomes were known. */
  roundTrips(name: string): { sent: Float64Array; rtt: Float64Array } {
    const columns = this.probes.get(name);
    const known = this.ordered.get(name);
    if (!columns) return { sent: new Float64Array(), rtt: new Float64Array() };
    if (known?.sent.length === columns.t_ns.length) return known;
    const order = Array.from(columns.t_ns.values.keys()).sort((a, b) => columns.t_ns.at(a) - columns.t_ns.at(b));
    const found = {
      sent: Float64Array.from(order, (at) => columns.t_ns.at(at)),
      rtt: Float64Array.from(order, (at) => columns.rtt_ns.at(at)),
    };
    this.ordered.set(name, found);
    return found;
  }

  /** The rate of a port at a time; null if it has none. */
  rateAt(port: string, t: number): number | null {
    const rate = this.valueAt(this.capacity.get(port), "rate_bps", t);
    return Number.isFinite(rate) ? rate : (this.opened.network.ports.find((each) => each.name === port)?.rate_bps ?? null);
  }

  /** The mean rate of a port between two times; null if it has none. */
  meanRate(port: string, from: number, to: number): number | null {
    const columns = this.capacity.get(port);
    if (!columns || to <= from) return this.rateAt(port, from);
    let bits = 0;
    for (let at = 0; at < columns.t_ns.length; at++) {
      const start = Math.max(from, columns.t_ns.at(at));
      const end = at + 1 < columns.t_ns.length ? Math.min(to, columns.t_ns.at(at + 1)) : to;
      if (end > start) bits += columns.rate_bps.at(at) * (end - start);
    }
    return bits / (to - from);
  }

  /** A column's value at the last sample not after `t`; NaN before the first. */
  valueAt(columns: { t_ns: Column; [key: string]: Column } | undefined, key: string, t: number): number {
    if (!columns) return NaN;
    const at = lastAt(columns.t_ns.values, t);
    return at < 0 ? NaN : columns[key]!.at(at);
  }
}

/** Bytes that a flow has delivered by a time: between two samples, in proportion. */
export function deliveredBy(flow: Columns<FlowSeries>, t: number): number {
  const at = lastAt(flow.t_ns.values, t);
  if (at < 0) return 0;
  const known = flow.delivered.at(at);
  const before = Number.isFinite(known) ? known : 0;
  if (at + 1 >= flow.t_ns.length) return before;
  const next = flow.delivered.at(at + 1);
  const [start, end] = [flow.t_ns.at(at), flow.t_ns.at(at + 1)];
  return Number.isFinite(next) && end > start ? before + ((next - before) * (t - start)) / (end - start) : before;
}

/** The quantile of sorted values: the smallest that at least this share does not exceed. */
export function quantile(sorted: Float64Array | number[], share: number): number {
  if (!sorted.length) return NaN;
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}
