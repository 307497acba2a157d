// One state being run: asks the worker, collects its answers, and knows the network at each time of the run.

import type { Client, RunOptions } from "../core/client";
import type { Opened, Refused } from "../core/protocol";
import { Document } from "./document";
import { Network } from "./network";
import { Run } from "./run";
import type { State } from "./state";
import { t } from "./texts";

/** The network from a time on, if it changes during the run. */
export interface Segment {
  from_ns: number;
  network: Network;
}

export interface Result {
  state: State;
  run: Run;
  /** The network from each change on; the first is that of the beginning. */
  segments: Segment[];
  /** The port whose packets are logged. */
  port: string;
  /** The file as the run begins with it, and as it was before any change. */
  document: Document | null;
  base: Document | null;
}

export function requestOf(state: State, watch: string[], extra: string[] = []): RunOptions {
  return {
    toml: state.toml,
    files: state.files,
    point: state.point,
    ...(state.member === null ? {} : { member: state.member }),
    sets: [...state.sets, ...extra],
    changes: extra.length ? [] : state.changes,
    seed: state.seed,
    watch,
  };
}

/** The path and the label of each swept key at the point of a run. */
export function pointOf(opened: Opened): [string, string][] {
  return opened.points[opened.point]?.values ?? [];
}

/** The file of a state as the run has it at a time. */
export function documentAt(state: State, opened: Opened, t: number): Document | null {
  const changed = state.changes.filter((each) => each.at_ns <= t).flatMap((each) => each.sets);
  return Document.of(state.toml)?.atPoint(pointOf(opened)).with([...state.sets, ...changed]) ?? null;
}

export function segmentAt(result: Result, t: number): Segment {
  let found = result.segments[0]!;
  for (const each of result.segments) if (each.from_ns <= t) found = each;
  return found;
}

export interface Listener {
  opened?: (result: Result) => void;
  progress?: (result: Result) => void;
  done: (result: Result) => void;
  refused: (refused: Refused) => void;
  failed: (message: string) => void;
}

/** Runs states one after the other on one worker; a newer one replaces an older one. */
export class Session {
  private turn = 0;

  constructor(private readonly client: Client) {}

  /** Runs a state; its packets are logged from a time on. */
  async start(state: State, listener: Listener, packets_from_ns = 0): Promise<void> {
    const turn = ++this.turn;
    try {
      await this.prepare(state, listener, packets_from_ns, () => turn !== this.turn);
    } catch (error) {
      if (turn === this.turn) listener.failed(String(error));
    }
  }

  private async prepare(state: State, listener: Listener, packets_from_ns: number, isOld: () => boolean, asksFirst = state.watch === null): Promise<void> {
    // A run describes its network too, so without changes and with a known port nothing need be asked first.
    if (!asksFirst && state.watch !== null && !state.changes.length) {
      this.run(state, state.watch, null, listener, packets_from_ns, isOld);
      return;
    }
    const first = await this.client.check(requestOf(state, []));
    if (isOld()) return;
    if (first.kind === "refused") return listener.refused(first);
    const network = new Network(first);
    const port = portOf(state, network);
    if (port === null) return listener.failed(t("failed.empty"));
    const segments: Segment[] = [{ from_ns: 0, network }];
    let changed: string[] = [];
    for (const change of state.changes) {
      changed = [...changed, ...change.sets];
      const then = await this.client.check(requestOf(state, [], changed));
      if (isOld()) return;
      if (then.kind === "opened") segments.push({ from_ns: change.at_ns, network: new Network(then) });
    }
    this.run(state, port, segments, listener, packets_from_ns, isOld);
  }

  private run(state: State, watch: string, known: Segment[] | null, listener: Listener, packets_from_ns: number, isOld: () => boolean): void {
    let result: Result | null = null;
    this.client.run({ ...requestOf(state, [watch]), packets_from_ns }, {
      opened: (opened) => {
        if (isOld()) return;
        const segments = known ?? [{ from_ns: 0, network: new Network(opened) }];
        const port = portOf({ ...state, watch }, segments[0]!.network);
        // The file has no such port: the run is made again with the packets of another.
        if (port !== watch) return void this.prepare(state, listener, packets_from_ns, isOld, true).catch((error: unknown) => listener.failed(String(error)));
        const base = Document.of(state.toml)?.atPoint(pointOf(opened)) ?? null;
        result = { state, run: new Run(opened, packets_from_ns), segments, port, document: base?.with(state.sets) ?? null, base };
        listener.opened?.(result);
      },
      chunk: (chunk) => {
        if (isOld() || !result) return;
        result.run.add(chunk);
        listener.progress?.(result);
      },
      done: ({ summary }) => {
        if (isOld() || !result) return;
        result.run.summary = summary;
        result.run.until_ns = result.run.duration_ns;
        listener.done(result);
      },
      refused: (refused) => isOld() || listener.refused(refused),
      failed: ({ message }) => isOld() || listener.failed(message),
    });
  }
}

/** The port to look at: the wanted one, or where packets wait. */
function portOf(state: State, network: Network): string | null {
  return state.watch !== null && network.ports.has(state.watch) ? state.watch : network.bottleneck();
}
