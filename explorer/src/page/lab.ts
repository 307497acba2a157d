// The state of the page and its runs: what is run now, what it is compared with, and the time of the picture.

import { Client } from "../core/client";
import type { Refused } from "../core/protocol";
import { Flows } from "./flows";
import { meaning, type Meaning } from "./meaning";
import { Player } from "./player";
import { Session, type Result } from "./session";
import { fullest } from "./stage";
import type { History, State } from "./state";
import { t } from "./texts";

const BEFORE_LOAD_NS = 0.3e9;
/** How long before the picture's time another log of packets begins, so that those in the queue are in it. */
const LEAD_NS = 2e9;

/** A run, and what is made of it. */
export interface Reading {
  readonly result: Result;
  readonly flows: Flows;
  /** null while it goes on. */
  meaning: Meaning | null;
}

/** Where the time of a new picture begins: at a moment worth looking at, or where the load does; null: where it is. */
export type Opening = "moment" | "start" | null;

/** Who wants to know what happens. */
export interface Watcher {
  /** Another state is the present one, and its run begins. */
  began(): void;
  /** The run has come as far as this share. */
  progressed(share: number): void;
  /** Another run is shown than this one before. */
  replaced(previous: Reading | null): void;
  /** The shown run has grown, or more of its packets is known. */
  grew(): void;
  /** The shown run is over. */
  ended(reading: Reading): void;
  /** The present state cannot run: see `problem`. */
  refused(): void;
  /** Another run is compared with, or none. */
  compared(): void;
}

export class Lab {
  readonly player = new Player();
  watcher!: Watcher;
  /** The run that is shown. While a newer one has not come as far as the picture, that is an older one. */
  shown: Reading | null = null;
  /** The run whose numbers are shown: the last one that came to its end. */
  measured: Reading | null = null;
  before: Reading | null = null;
  problem: Refused | null = null;
  /** Whether the problem is the simulator's own, not one of the experiment. */
  hasFailed = false;

  private readonly client = new Client();
  private readonly session = new Session(this.client);
  private readonly earlier = new Session(new Client());
  /** Runs again for the packets of a later time, if the log has no room for all. */
  private readonly later = new Session(new Client());
  private opening: Opening = "moment";

  /** `isQuiet`: whether the reader does not want anything to move by itself. */
  constructor(
    readonly history: History,
    private readonly isQuiet: () => boolean,
  ) {}

  /** The JSON Schema of experiments. */
  schema(): Promise<Record<string, unknown>> {
    return this.client.schema();
  }

  /** Makes a state the present one, and runs it. */
  go(state: State, key = "", from: Opening = null): void {
    this.history.push(state, key);
    if (from) this.opening = from;
    this.refresh();
  }

  /** Opens a state of a link, at a time if it has one. */
  open(state: State, at_ns: number | null): void {
    this.opening = at_ns === null ? "moment" : null;
    this.player.t = at_ns ?? 0;
    this.player.playing = false;
    this.go(state);
  }

  /** Runs the present state. */
  refresh(): void {
    const { player } = this;
    this.watcher.began();
    let reading: Reading | null = null;
    const show = (result: Result): Reading => {
      reading ??= this.show(result);
      this.player.limit = result.run.until_ns;
      this.watcher.grew();
      return reading;
    };
    void this.session.start(this.history.now, {
      opened: (result) => {
        this.problem = null;
        reading = null;
        player.end = result.run.duration_ns;
        if (this.opening) {
          player.t = beginning(result);
          player.playing = !this.isQuiet();
        }
      },
      progress: (result) => {
        this.watcher.progressed(result.run.until_ns / result.run.duration_ns);
        // The picture of the run before stays until the new one has come as far.
        if (result.run.until_ns >= Math.min(player.t, result.run.duration_ns)) show(result);
      },
      done: (result) => {
        const done = show(result);
        done.meaning = meaning(result);
        this.measured = done;
        if (this.opening === "moment" && this.isQuiet()) player.t = filled(result);
        this.opening = null;
        this.watcher.ended(done);
      },
      refused: (refused) => this.refuse(refused, false),
      failed: (message) => this.refuse({ kind: "refused", id: 0, message: failure(message), problems: [] }, true),
    });
  }

  private refuse(problem: Refused, hasFailed: boolean): void {
    this.problem = problem;
    this.hasFailed = hasFailed;
    this.watcher.refused();
  }

  private show(result: Result): Reading {
    const previous = this.shown;
    const reading: Reading = { result, flows: new Flows(result), meaning: null };
    const { player, before } = this;
    this.shown = reading;
    player.end = result.run.duration_ns;
    if (player.t > player.end) player.t = player.end;
    this.watcher.replaced(previous);
    if (before && before.result.port !== result.port) this.compare(before.result.state, result.port);
    return reading;
  }

  /** Keeps the shown run to compare others with. */
  keep(): void {
    this.before = this.shown;
    this.watcher.compared();
  }

  /** Ends the comparison. */
  drop(): void {
    this.before = null;
    this.watcher.compared();
  }

  /** Runs a state to compare the present one with. */
  compare(state: State, port: string): void {
    const drop = (): void => this.drop();
    void this.earlier.start({ ...state, watch: port }, {
      done: (result) => {
        this.before = { result, flows: new Flows(result), meaning: meaning(result) };
        this.watcher.compared();
      },
      refused: drop,
      failed: drop,
    });
  }

  private fetching: { result: Result; from_ns: number } | null = null;

  /** Gets the packets of the picture's time, if the logs that there are do not reach it. */
  fetchPackets(): void {
    const { shown, before, player } = this;
    if (shown) this.fetchOf(shown.result);
    if (before && shown?.result.run.packets.get(shown.result.port)?.covers(player.t)) this.fetchOf(before.result);
  }

  private fetchOf(result: Result): void {
    const { player } = this;
    const track = result.run.packets.get(result.port);
    if (!track || track.covers(player.t) || result.run.summary === null) return;
    const from_ns = Math.max(0, player.t - LEAD_NS);
    if (this.fetching?.result === result && Math.abs(this.fetching.from_ns - from_ns) < LEAD_NS / 2) return;
    this.fetching = { result, from_ns };
    const take = (other: Result): void => {
      const found = other.run.packets.get(result.port);
      if (found) result.run.packets.set(result.port, found);
      this.watcher.grew();
    };
    const end = (): void => void (this.fetching = null);
    const isThere = (other: Result): boolean => other.run.until_ns > player.t + LEAD_NS || other.run.summary !== null;
    void this.later.start({ ...result.state, watch: result.port }, {
      progress: (other) => isThere(other) && take(other),
      done: (other) => {
        take(other);
        end();
      },
      refused: end,
      failed: end,
    }, from_ns);
  }
}

/** Why the simulator does not run: what the browser lacks, or its own message. */
function failure(message: string): string {
  const missing = ["WebAssembly", "Worker", "DecompressionStream"].filter((each) => !(each in globalThis));
  return missing.length ? t("failed.browser", { what: missing.join(", ") }) : t("failed", { message });
}

/** Shortly before the load begins. */
function beginning({ run, port, segments }: Result): number {
  const starts = segments[0]!.network.loads(port).map((each) => each.start_ns);
  return starts.length ? Math.max(0, Math.min(Math.min(...starts) - BEFORE_LOAD_NS, 0.9 * run.duration_ns)) : 0;
}

/** When the queue is first nearly as long as it gets: for readers who do not want anything to move. */
function filled(result: Result): number {
  const series = result.run.ports.get(result.port);
  if (!series) return 0;
  const most = fullest(result.run, result.port);
  return Math.max(0, series.t_ns.values.find((_, at) => most > 0 && series.packets.at(at) >= 0.8 * most) ?? 0);
}
