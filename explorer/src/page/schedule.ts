// Changes during a run as an experiment's file can express them: a link's rate can have a schedule, nothing else changes in time.

import { isTable, keysOf, pathOf, written, type Document, type Value } from "./document";
import type { Change, State } from "./state";
import { exactTime, rateOf, timeOf } from "./units";

export interface Scheduled {
  /** Overrides for the whole run that do what some of the changes do. */
  sets: string[];
  /** The changes that no file can express. */
  lost: Change[];
}

/** A step of a schedule: from when on, and the rate as the file writes it. */
type Step = [from_ns: number, rate: string];

const DIRECTIONS = ["forward", "reverse"] as const;

/** The steps of a rate; null: it is none, or varies in another way. */
function stepsOf(value: Value | undefined): Step[] | null {
  if (typeof value === "string") return rateOf(value) === null ? null : [[0, value]];
  if (!Array.isArray(value)) return null;
  const steps: Step[] = [];
  for (const each of value) {
    if (!Array.isArray(each) || each.length !== 2 || typeof each[1] !== "string") return null;
    const from_ns = timeOf(each[0]);
    if (from_ns === null) return null;
    steps.push([from_ns, each[1]]);
  }
  return steps.length ? steps : null;
}

/** The name of the link if a path is that of its rate. */
function linkOf(path: string): string | null {
  const keys = keysOf(path.trim());
  const isRate = keys[0] === "link" && keys.at(-1) === "rate";
  const isOwn = keys.length === 3 || (keys.length === 4 && DIRECTIONS.some((each) => each === keys[2]));
  return isRate && isOwn ? keys[1]! : null;
}

/** Turns changes during a run into overrides. `base` is the file as the run begins with it. */
export function scheduled({ changes }: State, base: Document, duration_ns: number): Scheduled {
  const later = changes.filter((each) => each.at_ns < duration_ns).sort((a, b) => a.at_ns - b.at_ns);
  const schedules = new Map<string, Step[]>();
  const lost: Change[] = [];
  let now = base;
  for (const { at_ns, sets } of later) {
    const left: string[] = [];
    for (const set of sets) {
      const link = linkOf(set.slice(0, Math.max(0, set.indexOf("="))));
      const then = now.with([set]);
      const steps = link === null ? null : stepsAt(link, now, then, schedules, at_ns);
      if (steps) for (const [path, each] of steps) schedules.set(path, each);
      else left.push(set);
      now = then;
    }
    if (left.length) lost.push({ at_ns, sets: left });
  }
  const sets = [...schedules].map(([path, steps]) => `${path}=${written(steps.map(([from_ns, rate]): Value => [exactTime(from_ns), rate]))}`);
  return { sets, lost };
}

/** The schedules of the directions of a link that a change has another rate for; null if one cannot have any. */
function stepsAt(link: string, now: Document, then: Document, known: Map<string, Step[]>, at_ns: number): [string, Step[]][] | null {
  const found: [string, Step[]][] = [];
  for (const direction of DIRECTIONS) {
    const [before, after] = [now, then].map((each) => each.ofPort(link, direction, "rate"));
    if (written(before ?? "") === written(after ?? "") || (isTable(before) && before === after)) continue;
    const path = pathOf("link", link, direction, "rate");
    const [old, own] = [known.get(path) ?? stepsOf(before), stepsOf(after)];
    if (!old || !own) return null;
    const latest = own.filter(([from]) => from <= at_ns).at(-1);
    if (!latest) return null;
    const next: Step[] = [...old.filter(([from]) => from < at_ns), [at_ns, latest[1]], ...own.filter(([from]) => from > at_ns)];
    found.push([path, next[0]![0] === 0 ? next : [[0, next[0]![1]], ...next]]);
  }
  return found;
}
