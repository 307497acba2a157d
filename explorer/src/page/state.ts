// What the page shows: an experiment, the changes that a reader made to it, and what is looked at. Plain data, so that it
// can be undone and sent as a link.

export interface Change {
  at_ns: number;
  sets: string[];
}

export interface State {
  /** The preset that the text came from; null for a text of the reader's own. */
  preset: string | null;
  toml: string;
  files: Record<string, string>;
  point: number;
  /** Number of the population's member; null: the seed. */
  member: number | null;
  /** `path=value`, for the whole run. */
  sets: string[];
  /** The same from a time on. */
  changes: Change[];
  seed: number;
  /** The port whose packets are shown; null: the page chooses. */
  watch: string | null;
}

export const MOST_SETS = 200;
export const MOST_CHANGES = 50;
export const MOST_TOML = 1 << 20;

export function fresh(preset: string | null, toml: string, part: Partial<State> = {}): State {
  return { preset, toml, files: {}, point: 0, member: null, sets: [], changes: [], seed: 1, watch: null, ...part };
}

/** The state with a value at a path, for the whole run or from a time on. An empty value: as the file has it. */
export function withSet(state: State, path: string, value: string, at_ns: number | null): State {
  const own = value === "" ? [] : [`${path}=${value}`];
  const put = (sets: string[]): string[] => [...sets.filter((each) => !shadows(path, each)), ...own];
  if (at_ns === null) return { ...state, sets: put(state.sets) };
  const earlier = state.changes.filter((each) => each.at_ns < at_ns);
  const same = state.changes.find((each) => each.at_ns === at_ns);
  const later = state.changes.filter((each) => each.at_ns > at_ns);
  return { ...state, changes: [...earlier, { at_ns, sets: put(same?.sets ?? []) }, ...later] };
}

// A value for a whole table makes the values of its keys obsolete, and a value replaces an earlier one.
function shadows(path: string, set: string): boolean {
  const other = set.slice(0, set.indexOf("="));
  return other === path || other.startsWith(`${path}.`);
}

/** The state without what was set at some paths for the whole run. */
export function without(state: State, paths: string[]): State {
  return { ...state, sets: state.sets.filter((each) => !paths.some((path) => shadows(path, each))) };
}

const MOST_UNDOS = 200;
/** Characters of all files that can be undone to. */
const MOST_KEPT = 1 << 24;

/** The states that were, and those that were undone. */
export class History {
  private past: State[] = [];
  private future: State[] = [];
  private last: { key: string; at: number } | null = null;

  constructor(public now: State) {}

  /** Makes a state the present one. Changes with the same key in quick succession, as of one slider, are one step. */
  push(state: State, key = ""): void {
    const at = performance.now();
    const continues = key !== "" && this.last?.key === key && at - this.last.at < 1500;
    if (!continues) this.past.push(this.now);
    while (this.past.length > MOST_UNDOS || (this.past.length > 1 && this.kept() > MOST_KEPT)) this.past.shift();
    this.future = [];
    this.last = { key, at };
    this.now = state;
  }

  // States that have the same text share it.
  private kept(): number {
    return this.past.reduce((sum, each, at) => sum + (each.toml === this.past[at - 1]?.toml ? 0 : each.toml.length), 0);
  }

  undo(): boolean {
    return this.move(this.past, this.future);
  }

  redo(): boolean {
    return this.move(this.future, this.past);
  }

  private move(from: State[], to: State[]): boolean {
    const state = from.pop();
    if (!state) return false;
    to.push(this.now);
    this.now = state;
    this.last = null;
    return true;
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }
}
