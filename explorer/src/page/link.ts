// The state in the URL's fragment, as JSON in base64url: plain (`j=`), deflated (`z=`), or compressed with gzip (`e=`), which
// `bufferscope explore` writes. Anybody can make a link, so nothing in a fragment is trusted.

import { presetText } from "../presets/index";
import { fresh, MOST_CHANGES, MOST_SETS, MOST_TOML, type Change, type State } from "./state";
import { t } from "./texts";

export const MOST_FRAGMENT = 1 << 20;
const MOST_JSON = 1 << 20;
const MOST_NS = 86_400e9;
const MOST_SET = 100_000;
const MOST_FILES = 20;

/** Why a link can't be opened, in words. */
export class LinkError extends Error {
  constructor(why: "damaged" | "long" | "version" | "unknown", name = "") {
    super(t(`link.${why}`, { name: name.slice(0, 80) }));
  }
}

export interface Linked {
  state: State;
  before: State | null;
  at_ns: number | null;
}

function encoded(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function decoded(text: string): Uint8Array<ArrayBuffer> {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) throw new LinkError("damaged");
  try {
    return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
  } catch {
    throw new LinkError("damaged");
  }
}

async function through(bytes: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MOST_JSON) {
      void reader.cancel();
      throw new LinkError("long");
    }
    parts.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The fragment, without `#`, of a state. */
export async function fragmentOf({ state, before, at_ns }: Linked): Promise<string> {
  const data: Record<string, unknown> = { v: 1, ...plain(state) };
  if (before) data["before"] = plain(before);
  if (at_ns !== null) data["at_ns"] = Math.round(at_ns);
  const bytes = new TextEncoder().encode(JSON.stringify(data));
  if (typeof CompressionStream === "undefined") return `j=${encoded(bytes)}`;
  return `z=${encoded(await through(bytes, new CompressionStream("deflate-raw")))}`;
}

function plain(state: State): Record<string, unknown> {
  const data: Record<string, unknown> = {};
  if (state.preset !== null && presetText(state.preset) === state.toml) data["preset"] = state.preset;
  else data["toml"] = state.toml;
  if (Object.keys(state.files).length) data["files"] = state.files;
  if (state.point) data["point"] = state.point;
  if (state.member !== null) data["member"] = state.member;
  if (state.sets.length) data["sets"] = state.sets;
  if (state.changes.length) data["changes"] = state.changes;
  if (state.seed !== 1) data["seed"] = state.seed;
  if (state.watch !== null) data["watch"] = state.watch;
  return data;
}

/** What a fragment says; null if it is empty or not one of the page's. Throws `LinkError`. */
export async function openFragment(fragment: string): Promise<Linked | null> {
  const match = /^#?([ejz])=(.*)$/s.exec(fragment);
  if (!match) return null;
  if (fragment.length > MOST_FRAGMENT) throw new LinkError("long");
  let bytes: Uint8Array = decoded(match[2]!);
  if (match[1] !== "j") {
    try {
      const format = match[1] === "e" ? "gzip" : "deflate-raw";
      bytes = await through(bytes as Uint8Array<ArrayBuffer>, new DecompressionStream(format));
    } catch (error) {
      throw error instanceof LinkError ? error : new LinkError("damaged");
    }
  }
  let data: unknown;
  try {
    data = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new LinkError("damaged");
  }
  if (!isTable(data) || data["v"] !== 1) throw new LinkError("version");
  const before = data["before"];
  const at_ns = data["at_ns"];
  return {
    state: stateOf(data),
    before: isTable(before) ? stateOf(before) : null,
    at_ns: isTime(at_ns) ? at_ns : null,
  };
}

function stateOf(data: Record<string, unknown>): State {
  const named = data["preset"];
  const preset = typeof named === "string" && presetText(named) !== null ? named : null;
  const own = data["toml"];
  const toml = typeof own === "string" ? own : preset !== null ? presetText(preset) : null;
  if (toml === null) throw typeof named === "string" ? new LinkError("unknown", named) : new LinkError("damaged");
  if (toml.length > MOST_TOML) throw new LinkError("long");
  const { files, point, member, seed, watch, sets, changes } = data;
  return fresh(typeof own === "string" ? null : preset, toml, {
    files: isTable(files) ? texts(files) : {},
    point: isCount(point, 1e6) ? point : 0,
    member: isCount(member, 1e6) ? member : null,
    seed: isCount(seed, Number.MAX_SAFE_INTEGER) ? seed : 1,
    watch: typeof watch === "string" ? watch.slice(0, 400) : null,
    sets: setsOf(sets),
    changes: Array.isArray(changes) ? atMost(changes, MOST_CHANGES).flatMap(changeOf) : [],
  });
}

function changeOf(each: unknown): Change[] {
  if (!isTable(each) || !isTime(each["at_ns"])) return [];
  return [{ at_ns: Math.round(each["at_ns"]), sets: setsOf(each["sets"]) }];
}

function setsOf(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const sets = value.filter((each): each is string => typeof each === "string");
  if (sets.some((each) => each.length > MOST_SET)) throw new LinkError("long");
  return atMost(sets, MOST_SETS);
}

function texts(files: Record<string, unknown>): Record<string, string> {
  const pairs = Object.entries(files).filter((each): each is [string, string] => typeof each[1] === "string");
  return Object.fromEntries(atMost(pairs, MOST_FILES));
}

// A part of what a link says would be another experiment.
function atMost<Item>(items: Item[], most: number): Item[] {
  if (items.length > most) throw new LinkError("long");
  return items;
}

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isCount = (value: unknown, most: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
const isTime = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= MOST_NS;
