// The picture in words: what it shows at a time, and what the run was like.

import { GAME_LIMITS_NS, idleRoundTrip, type Meaning } from "./meaning";
import { lastAt } from "./columns";
import { segmentAt, type Result } from "./session";
import { joined, t } from "./texts";
import { brief, fixed, rateWords, sizeWords, timeWords } from "./units";

/** The round trip of the last ping that was answered by a time, and what it would take without a queue. */
export function lastRoundTrip(result: Result, now: number): { rtt: number; idle: number } | null {
  const segment = segmentAt(result, now);
  const probe = segment.network.probesOf(result.port).find((each) => result.run.probes.has(each.name));
  if (!probe) return null;
  const { sent, rtt } = result.run.roundTrips(probe.name);
  for (let at = lastAt(sent, now); at >= 0; at--) {
    const trip = rtt[at]!;
    if (Number.isFinite(trip) && sent[at]! + trip <= now) {
      return { rtt: trip, idle: Math.min(trip, idleRoundTrip(result.run, segment.network, probe, result.document, segment.from_ns, result.run.duration_ns)) };
    }
  }
  return null;
}

/** What the picture shows at a time. */
export function sentence(result: Result, now: number): string {
  const { run, port } = result;
  const series = run.ports.get(port);
  const packets = run.valueAt(series, "packets", now);
  const ring = run.valueAt(series, "ring_bytes", now);
  const bytes = run.valueAt(series, "bytes", now) + ring;
  const dropped = run.valueAt(series, "dropped", now);
  const marked = run.valueAt(series, "marked", now);
  const [device] = segmentAt(result, now).network.endsOf(port);
  // On the air a packet's time is not its bytes at a rate.
  const found = segmentAt(result, now).network.ports.get(port);
  const isRadio = found?.radio ?? false;
  const rate = isRadio ? null : run.rateAt(port, now);
  const at = t("words.at", { time: fixed(now / 1e9, 2) });
  const parts: string[] = [];
  if (found?.queue_of) parts.push(joined(at, t("words.elsewhere", { device, port: found.queue_of, ring: sizeWords(ring || 0) })));
  else if (!Number.isFinite(packets)) parts.push(joined(at, t("words.nothing", { device })));
  else if (bytes === 0 && packets === 0) parts.push(joined(at, t("words.empty", { device })));
  else if (rate === null && ring > 0) parts.push(joined(at, t("words.waiting.driver", { device, packets: brief(packets, 5), ring: sizeWords(ring) })));
  else if (rate === null) parts.push(joined(at, t("words.waiting.plain", { device, packets: brief(packets, 5) })));
  else if (ring > 0) parts.push(joined(at, t("words.waiting.ring", { device, packets: brief(packets, 5), ring: sizeWords(ring), time: timeWords((bytes * 8e9) / rate) })));
  else parts.push(joined(at, t("words.waiting", { device, packets: brief(packets, 5), time: timeWords((bytes * 8e9) / rate) })));
  const trip = lastRoundTrip(result, now);
  if (trip) {
    const added = trip.rtt - trip.idle;
    parts.push(added > 2e6 ? t("words.slow", { rtt: timeWords(trip.rtt), idle: timeWords(trip.idle) }) : t("words.quick", { rtt: timeWords(trip.rtt) }));
  }
  if (dropped > 0) parts.push(t("words.dropped", { count: brief(dropped, 7) }));
  if (marked > 0) parts.push(t("words.marked", { count: brief(marked, 7) }));
  return joined(...parts);
}

const MOST_PARTS = 4;

/** The share of each sender in what all of them got. */
function partsOf({ parts, goodput }: Meaning): string {
  return parts.map(({ name, bps }) => t("verdict.part", { name, share: Math.round((100 * bps) / Math.max(goodput, 1)) })).join(t("verdict.and"));
}

/** The percentage of pings that were lost. */
export const lostShare = (rtt: NonNullable<Meaning["rtt"]>): string => brief((100 * rtt.lost) / rtt.count, 2);

/** What a whole run was like, in one sentence. */
export function verdict(found: Meaning): string {
  const share = found.rate ? Math.min(1, found.goodput / found.rate) : null;
  const got = share === null ? t("verdict.rate", { rate: rateWords(found.goodput) }) : t("verdict.filled", { rate: rateWords(found.goodput), share: Math.round(share * 100) });
  const filled = found.parts.length < 2 || found.parts.length > MOST_PARTS ? got : joined(got, t("verdict.parts", { parts: partsOf(found) }));
  if (!found.rtt?.count) return filled;
  const added = found.rtt.p95 - found.rtt.idle;
  if (!Number.isFinite(added)) {
    const share = lostShare(found.rtt);
    const half = found.rtt.p50 - found.rtt.idle;
    return joined(filled, Number.isFinite(half) ? t("verdict.lost", { share, added: timeWords(half) }) : t("verdict.lost.most", { share }));
  }
  const [some, more] = GAME_LIMITS_NS;
  const key = added < 10e6 ? "verdict.short" : added < some ? "verdict.little" : added < more ? "verdict.some" : "verdict.bloat";
  return joined(filled, t(key, { added: timeWords(added) }));
}
