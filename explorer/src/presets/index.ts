// The experiments that the page offers: lines of real people, and the catalogue of the package.

import catalogue from "catalogue:";
import { has, t, type Key } from "../page/texts";
import cable from "./lines/cable.toml";
import dsl from "./lines/dsl.toml";
import fibre from "./lines/fibre.toml";
import home from "./lines/home.toml";
import lte from "./lines/lte.toml";
import satellite from "./lines/satellite.toml";
import wifi from "./lines/wifi.toml";

const OWN = "line:";
/** Names with a colon are the page's own; no experiment of the catalogue has one. */
const LINES: readonly (readonly [string, string])[] = [
  ["line:home", home],
  ["line:cable", cable],
  ["line:dsl", dsl],
  ["line:fibre", fibre],
  ["line:lte", lte],
  ["line:wifi", wifi],
  ["line:satellite", satellite],
];

export const FIRST = "line:home";

export interface Preset {
  name: string;
  title: string;
  /** The document that it reproduces; null: a line. */
  document: string | null;
}

const TEXTS = new Map<string, string>([...LINES, ...catalogue.map((each) => [each.name, each.text] as const)]);

/** Experiments of the catalogue whose runs of hours a page has no patience for. */
const LONG = new Set(["dark-smokeping"]);
/** Ports that are more worth looking at than the slowest. */
const WATCH: Record<string, string> = { "line:wifi": "router>laptop" };

/** The title and the description of a line, in the language of the page; null for what is written in English only. */
export function lineWords(name: string | null): { title: string; about: string } | null {
  if (!name?.startsWith(OWN)) return null;
  const key = `preset.${name.slice(OWN.length)}`;
  const title = `${key}.title`;
  return { title: t(has(title) ? title : (key as Key)), about: t(`${key}.about` as Key) };
}

/** The port that a preset shows first; null: the page chooses. */
export function presetWatch(name: string): string | null {
  return Object.hasOwn(WATCH, name) ? WATCH[name]! : null;
}

/** The text of a preset's file; null if there is none of this name. */
export function presetText(name: string): string | null {
  return TEXTS.get(name) ?? null;
}

export const PRESETS: readonly Preset[] = [
  ...LINES.map(([name, text]) => ({ name, title: field(text, "title") ?? name, document: null })),
  ...catalogue.filter(({ name }) => !LONG.has(name)).map(({ name, text }) => ({
    name,
    title: field(text, "title") ?? name,
    document: field(text, "document") ?? field(text, "source") ?? "",
  })),
];

// Titles are basic strings at the top of a file; reading all files as TOML would delay the page.
function field(text: string, key: string): string | null {
  const match = new RegExp(`^${key} = ("(?:[^"\\\\]|\\\\.)*")`, "m").exec(text);
  return match ? String(JSON.parse(match[1]!)) : null;
}
