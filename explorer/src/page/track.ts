// The packets of one port: when each came, moved on, and was gone.

import { PacketEvent, type PacketLog } from "../core/protocol";
import { Column, lastAt } from "./columns";

const BLOCK = 256;

/** Where a packet is. */
export const Place = { Queue: 0, Ring: 1, Wire: 2, Dropped: 3 } as const;

export class Track {
  readonly flow = new Column();
  readonly bytes = new Column();
  /** Each NaN until it happened. */
  readonly came = new Column();
  readonly ring = new Column();
  readonly sent = new Column();
  readonly arrived = new Column();
  readonly dropped = new Column();
  readonly marked = new Column();
  /** The last event of each block of packets, to skip blocks that are long gone. */
  private readonly blockEnd: number[] = [];
  private readonly blockOpen: number[] = [];
  private readonly places = new Map<number, number>();
  /** Events after this time are missing. */
  truncated_ns = Infinity;

  /** Events before `from_ns` are missing. */
  constructor(readonly from_ns = 0) {}

  add(log: PacketLog): void {
    // A packet that has left for another port is gone from here, as one that has arrived.
    const columns = [this.came, this.ring, this.sent, this.arrived, this.dropped, this.marked, this.arrived];
    for (let at = 0; at < log.kind.length; at++) {
      const packet = this.placeOf(log.packet[at]!);
      const t = log.t_ns[at]!;
      if (packet >= this.flow.length) this.grow(packet + 1);
      this.flow.set(packet, log.flow[at]!);
      if (!this.bytes.at(packet)) this.bytes.set(packet, log.bytes[at]!);
      const kind = log.kind[at]!;
      columns[kind]!.set(packet, t);
      // A packet whose arrival is not logged (dropped at once) came when it was dropped.
      if (Number.isNaN(this.came.at(packet))) this.came.set(packet, t);
      const block = Math.floor(packet / BLOCK);
      this.blockEnd[block] = Math.max(this.blockEnd[block] ?? 0, t);
      if (kind === PacketEvent.Arrived || kind === PacketEvent.Dropped || kind === PacketEvent.Elsewhere) this.blockOpen[block]!--;
    }
    if (log.truncated_at_ns !== undefined) this.truncated_ns = Math.min(this.truncated_ns, log.truncated_at_ns);
  }

  /** The position of a packet in the columns: in the order of first events. A log that begins later knows few of them. */
  private placeOf(packet: number): number {
    if (this.from_ns === 0) return packet;
    let place = this.places.get(packet);
    if (place === undefined) this.places.set(packet, (place = this.places.size));
    return place;
  }

  private grow(length: number): void {
    for (let packet = this.flow.length; packet < length; packet++) {
      const block = Math.floor(packet / BLOCK);
      this.blockOpen[block] = (this.blockOpen[block] ?? 0) + 1;
    }
    this.flow.extend(length, 0);
    this.bytes.extend(length, 0);
    for (const each of [this.came, this.ring, this.sent, this.arrived, this.dropped, this.marked]) each.extend(length, NaN);
  }

  /** Whether the packets of a time are known. */
  covers(t: number): boolean {
    return t >= this.from_ns && t < this.truncated_ns;
  }

  get length(): number {
    return this.flow.length;
  }

  /** Calls `visit` for every packet in sight at `t`, in the order of arrival: those present, those about to come within `lead`, and those dropped less than `trail` ago. */
  each(t: number, lead: number, trail: number, visit: (packet: number, place: number) => void): void {
    const end = lastAt(this.came.values, t + lead) + 1;
    for (let block = 0; block * BLOCK < end; block++) {
      if (!this.blockOpen[block] && this.blockEnd[block]! + trail < t) continue;
      const last = Math.min(end, (block + 1) * BLOCK);
      for (let packet = block * BLOCK; packet < last; packet++) {
        const dropped = this.dropped.at(packet);
        if (dropped <= t) {
          if (dropped + trail >= t) visit(packet, Place.Dropped);
        } else if (this.arrived.at(packet) <= t) {
          continue;
        } else if (this.sent.at(packet) <= t) {
          visit(packet, Place.Wire);
        } else if (this.ring.at(packet) <= t) {
          visit(packet, Place.Ring);
        } else {
          visit(packet, Place.Queue);
        }
      }
    }
  }

  /** The next event after a time, or the one before it: where a step leads. */
  neighbour(t: number, forward: boolean): number | null {
    let found: number | null = null;
    const consider = (value: number): void => {
      if (forward ? value > t && (found === null || value < found) : value < t && (found === null || value > found)) found = value;
    };
    const middle = lastAt(this.came.values, t);
    // Packets near the time in the order of arrival: those still present, and the next.
    this.each(t, 0, 0, (packet) => {
      for (const column of [this.sent, this.dropped, this.arrived, this.came]) consider(column.at(packet));
    });
    for (let packet = Math.max(0, middle - 64); packet < Math.min(this.length, middle + 64); packet++) {
      for (const column of [this.came, this.sent, this.dropped]) consider(column.at(packet));
    }
    return found;
  }
}
