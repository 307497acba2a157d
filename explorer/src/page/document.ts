// The experiment's file as the page reads it: only to know which values its controls have, and to write the file anew.
// Whether it is valid is for the core to say.

import { parse, stringify } from "smol-toml";
import { withoutTable, withValue } from "./rewriting";
import type { State } from "./state";

export type Value = string | number | boolean | bigint | Date | Value[] | Table;
export interface Table {
  [key: string]: Value;
}

/** A longer text is written anew rather than changed in place, which reads all of it for each value. */
const MOST_EDITED = 1 << 17;
const NAMED = new Set(["link", "host", "traffic", "wifi"]);

/** A value as TOML on one line. */
export function written(value: Value): string {
  if (typeof value === "string") return JSON.stringify(value).replace(/\u007f/g, "\\u007f");
  if (Array.isArray(value)) return `[${value.map(written).join(", ")}]`;
  if (isTable(value)) {
    const pairs = Object.entries(value).map(([key, item]) => `${keyText(key)} = ${written(item)}`);
    return `{ ${pairs.join(", ")} }`;
  }
  return value instanceof Date ? value.toISOString() : String(value);
}

function keyText(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}

/** The keys of a path such as `link."my line".rate`. */
export function keysOf(path: string): string[] {
  const keys = path.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[^.]+/g) ?? [];
  return keys.map((key) => {
    if (key.startsWith("'")) return key.slice(1, -1);
    if (!key.startsWith('"')) return key;
    try {
      return String(JSON.parse(key));
    } catch {
      return key.slice(1, -1);
    }
  });
}

/** A path of keys, quoted where they must be. */
export function pathOf(...keys: string[]): string {
  return keys.map(keyText).join(".");
}

/** The value of a `path=value`, as `--set` reads it: TOML, or plain text where that is no TOML. */
export function valueOf(text: string): Value {
  try {
    const value = (parse(`v = ${text}`) as Table)["v"];
    return value === undefined ? text : value;
  } catch {
    return text;
  }
}

export const isTable = (value: unknown): value is Table =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);

function put(root: Table, keys: string[], value: Value): void {
  let table = root;
  for (let at = 0; at < keys.length - 1; at++) {
    const key = keys[at]!;
    let next: Value | undefined = Object.hasOwn(table, key) ? table[key] : undefined;
    if (Array.isArray(next) && at === 0 && NAMED.has(key)) {
      const name = keys[++at];
      next = next.find((each) => isTable(each) && each["name"] === name);
      if (!isTable(next)) return;
      if (at === keys.length - 1) return;
    } else if (!isTable(next)) {
      next = {};
      Object.defineProperty(table, key, { value: next, enumerable: true, configurable: true, writable: true });
    }
    table = next;
  }
  Object.defineProperty(table, keys.at(-1)!, { value, enumerable: true, configurable: true, writable: true });
}

const labelOf = (value: Value): string => (typeof value === "string" ? value : written(value));

/** An experiment's file with overrides applied. */
export class Document {
  private constructor(
    readonly text: string,
    private readonly root: Table,
  ) {}

  /** null if it is not TOML. */
  static of(text: string): Document | null {
    try {
      return new Document(text, parse(text) as Table);
    } catch {
      return null;
    }
  }

  /** A copy with the values of one point of the sweep: the path and the label of each swept key. */
  atPoint(values: [string, string][]): Document {
    const sweep = this.root["sweep"];
    if (!isTable(sweep) || !values.length) return this;
    const root = structuredClone(this.root);
    for (const [path, label] of values) {
      const tried = Object.hasOwn(sweep, path) ? sweep[path] : undefined;
      const value = isTable(tried) ? tried[label] : Array.isArray(tried) ? tried.find((each) => labelOf(each) === label) : undefined;
      if (value === undefined) continue;
      // A sweep of loads adds traffic to the file's own.
      if (path === "traffic" && Array.isArray(value)) root["traffic"] = [...this.tables("traffic"), ...value];
      else put(root, keysOf(path), structuredClone(value));
    }
    return new Document(this.text, root);
  }

  /** A copy in which some `path=value` apply. */
  with(sets: string[]): Document {
    const root = structuredClone(this.root);
    for (const set of sets) {
      const at = set.indexOf("=");
      if (at > 0) put(root, keysOf(set.slice(0, at).trim()), valueOf(set.slice(at + 1).trim()));
    }
    return new Document(this.text, root);
  }

  /** A value by its keys; undefined if the file does not have it. */
  get(...keys: string[]): Value | undefined {
    let value: Value | undefined = this.root;
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at]!;
      if (Array.isArray(value)) value = value.find((each) => isTable(each) && each["name"] === key);
      else value = isTable(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    }
    return value;
  }

  /** A key of one direction of a link: its own, or that of both directions. */
  ofPort(link: string, direction: "forward" | "reverse", key: string): Value | undefined {
    return this.get("link", link, direction, key) ?? this.get("link", link, key);
  }

  tables(key: string): Table[] {
    const value = this.root[key];
    return Array.isArray(value) ? value.filter(isTable) : [];
  }

  /** The file with its sweep replaced by what one point of it says; comments and order stay as they are. */
  rewritten(): string {
    const root = structuredClone(this.root);
    delete root["sweep"];
    delete root["expect"];
    const text = this.text.length <= MOST_EDITED ? this.edited(root) : null;
    if (text !== null) {
      // What cannot be changed in place is written anew, without comments, rather than wrongly.
      try {
        if (same(parse(text) as Table, root)) return text;
      } catch {
        // As above.
      }
    }
    return stringify(root);
  }

  /** The text with every key that differs in `root`, tables and entries of lists one by one. */
  private edited(root: Table): string | null {
    const before = parse(this.text) as Table;
    let text: string | null = withoutTable(withoutTable(this.text, "sweep"), "expect");
    const put = (table: string[], entry: number | null, old: Table, now: Table): void => {
      for (const [key, value] of Object.entries(now)) {
        if (text !== null && !(key in old && same(old[key]!, value))) text = withValue(text, table, entry, keyText(key), written(value));
      }
    };
    for (const [key, value] of Object.entries(root)) {
      const old = before[key];
      if (old !== undefined && same(old, value)) continue;
      if (Array.isArray(value) && Array.isArray(old) && NAMED.has(key)) {
        if (value.length !== old.length) return null;
        value.forEach((each, at) => isTable(each) && isTable(old[at]) && put([key], at, old[at], each));
      } else if (isTable(value)) put([key], null, isTable(old) ? old : {}, value);
      else put([], null, before, { [key]: value });
    }
    return text;
  }
}

function same(a: Value, b: Value): boolean {
  if (isTable(a) && isTable(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key]!, b[key]!));
  }
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, at) => same(each, b[at]!));
  return Object.is(a, b);
}

/** The text that a reader edits: the file with all that was set for the whole run, and with `more`. */
export function textOf(state: State, point: [string, string][], more: string[] = []): string {
  const sets = [...state.sets, ...more];
  if (!point.length && !sets.length) return state.toml;
  const document = Document.of(state.toml);
  return document ? document.atPoint(point).with(sets).rewritten() : state.toml;
}
