// Quantities as experiment files write them, and as people read them.

import { withMark } from "./texts";

const RATES: Record<string, number> = {
  bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9, tbit: 1e12, kibit: 1024, mibit: 1024 ** 2, gibit: 1024 ** 3, tibit: 1024 ** 4,
  bps: 8, kbps: 8e3, mbps: 8e6, gbps: 8e9, tbps: 8e12, kibps: 8192, mibps: 8 * 1024 ** 2, gibps: 8 * 1024 ** 3, tibps: 8 * 1024 ** 4,
};
const TIMES: Record<string, number> = {
  ns: 1, nsec: 1, nsecs: 1, us: 1e3, usec: 1e3, usecs: 1e3, ms: 1e6, msec: 1e6, msecs: 1e6, s: 1e9, sec: 1e9, secs: 1e9,
};
const SIZES: Record<string, number> = {
  "": 1, b: 1, k: 1024, kb: 1024, m: 1024 ** 2, mb: 1024 ** 2, g: 1024 ** 3, gb: 1024 ** 3, kbit: 125, mbit: 125e3, gbit: 125e6,
};
const PACKETS: Record<string, number> = { "": 1, p: 1, pkt: 1, pkts: 1, packet: 1, packets: 1 };

function quantity(value: unknown, units: Record<string, number>): number | null {
  if (typeof value === "number") return units[""] === undefined ? null : value;
  if (typeof value !== "string") return null;
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(value);
  const unit = match ? units[match[2]!.toLowerCase()] : undefined;
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}

/** Bits per second of a rate such as `10mbit`; null if it is no constant rate. */
export const rateOf = (value: unknown): number | null => quantity(value, RATES);
/** Nanoseconds of a time such as `5ms`. */
export const timeOf = (value: unknown): number | null => quantity(value, TIMES);
/** Bytes of a size such as `256kb`. */
export const sizeOf = (value: unknown): number | null => quantity(value, SIZES);
/** Packets of a queue's length such as `100p`. */
export const packetsOf = (value: unknown): number | null => quantity(value, PACKETS);

/** A number with as many digits as are needed, as experiment files have it. */
function plain(value: number, digits = 3): string {
  const size = Math.abs(value);
  if (size >= 10 ** digits) return Math.round(value).toString();
  return Number(value.toPrecision(digits)).toString();
}

/** A number with as many digits as a reader needs. */
export function brief(value: number, digits = 3): string {
  return Number.isFinite(value) ? withMark(plain(value, digits)) : "–";
}

/** A number for readers, with a fixed number of digits behind the decimal mark. */
export const fixed = (value: number, digits: number): string => withMark(value.toFixed(digits));

/** A rate for an experiment file. */
export function rateText(bps: number): string {
  const rounded = Number(bps.toPrecision(3));
  if (rounded >= 1e9) return `${plain(rounded / 1e9)}gbit`;
  return rounded >= 1e6 ? `${plain(rounded / 1e6)}mbit` : `${plain(rounded / 1e3)}kbit`;
}

/** A time for an experiment file. */
export function timeText(ns: number): string {
  const rounded = Number(ns.toPrecision(3));
  if (rounded >= 1e9) return `${plain(rounded / 1e9)}s`;
  return rounded >= 1e6 ? `${plain(rounded / 1e6)}ms` : `${Math.round(rounded / 1e3)}us`;
}

/** A time for an experiment file, to the nanosecond. */
export function exactTime(ns: number): string {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]] as const) if (ns % size === 0) return `${ns / size}${unit}`;
  return `${ns}ns`;
}

/** A rate for readers. */
export function rateWords(bps: number): string {
  if (bps >= 1e9) return `${brief(bps / 1e9)} Gbit/s`;
  return bps >= 1e6 ? `${brief(bps / 1e6)} Mbit/s` : `${brief(bps / 1e3)} kbit/s`;
}

/** A time for readers. */
export function timeWords(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  if (size >= 1e9) return `${brief(ns / 1e9)} s`;
  if (size >= 1e6 || ns === 0) return `${brief(ns / 1e6)} ms`;
  return `${brief(ns / 1e3)} µs`;
}

/** Bytes for readers; a kB has 1024 bytes, as in experiment files. */
export function sizeWords(bytes: number): string {
  if (bytes >= 1024 ** 2) return `${brief(bytes / 1024 ** 2)} MB`;
  return bytes >= 1024 ? `${brief(bytes / 1024)} kB` : `${brief(bytes)} B`;
}
