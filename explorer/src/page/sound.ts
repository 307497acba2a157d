// The delay of a call as sound: a high tone for what one says, and a low one when the answer can begin at the earliest,
// which is the round trip of the ping of that time. A lost ping has no answer.

import type { Result } from "./session";
import { segmentAt } from "./session";
import { lastAt } from "./columns";

const TONES = 6;
const EVERY_S = 1.2;
/** A pause longer than this would run into the next turns. */
const LONGEST_S = 8;

/** The round trips, in s, of the pings from a time on, one for each turn; null: lost. */
export function turns(result: Result, from_ns: number): (number | null)[] {
  const probe = segmentAt(result, from_ns).network.probesOf(result.port).find((each) => result.run.probes.has(each.name));
  if (!probe) return [];
  const { sent, rtt } = result.run.roundTrips(probe.name);
  const found: (number | null)[] = [];
  for (let turn = 0; turn < TONES; turn++) {
    const t = from_ns + turn * EVERY_S * 1e9;
    const at = lastAt(sent, t);
    if (at < 0 || t > result.run.duration_ns) continue;
    const trip = rtt[at]!;
    found.push(Number.isFinite(trip) ? Math.min(LONGEST_S, trip / 1e9) : null);
  }
  return found;
}

let context: AudioContext | null = null;

/** Plays the turns; another call stops the one before. Resolves at the end. */
export async function play(trips: (number | null)[]): Promise<void> {
  void context?.close();
  const own = (context = new AudioContext());
  const start = own.currentTime + 0.05;
  let end = start;
  trips.forEach((trip, turn) => {
    const at = start + turn * EVERY_S;
    tone(own, 740, at);
    end = Math.max(end, at + 0.2);
    if (trip === null) return;
    tone(own, 440, at + trip);
    end = Math.max(end, at + trip + 0.2);
  });
  await new Promise((done) => setTimeout(done, (end - own.currentTime) * 1000));
  if (own === context) {
    context = null;
    await own.close();
  }
}

function tone(context: AudioContext, hertz: number, at: number): void {
  const oscillator = context.createOscillator();
  const gain = context.createGain();
  oscillator.frequency.value = hertz;
  gain.gain.setValueAtTime(0, at);
  gain.gain.linearRampToValueAtTime(0.25, at + 0.008);
  gain.gain.exponentialRampToValueAtTime(0.001, at + 0.14);
  oscillator.connect(gain).connect(context.destination);
  oscillator.start(at);
  oscillator.stop(at + 0.15);
}
