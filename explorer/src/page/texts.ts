// The page's words, from one file for each language.

import en from "../texts/en.json";
import pt from "../texts/pt.json";
import zh from "../texts/zh.json";

export type Key = keyof typeof en;
const ALL: Record<string, Record<string, string>> = { en, pt, zh };
export const LANGUAGES: readonly (readonly [string, string])[] = [["en", "English"], ["pt", "Português"], ["zh", "中文"]];
/** The languages' tags, where they say more than their names. */
const TAGS: Record<string, string> = { pt: "pt-BR", zh: "zh-Hans" };
/** The languages that write a decimal comma. */
const COMMA = new Set(["pt"]);
const STORED = "bufferscope-language";

function preferred(): string {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(STORED);
  } catch {
    // A page from a file may have no storage.
  }
  const wanted = [stored, ...navigator.languages].map((each) => each?.slice(0, 2).toLowerCase() ?? "");
  return wanted.find((each) => Object.hasOwn(ALL, each)) ?? "en";
}

let language = preferred();

export const current = (): string => language;

export function choose(name: string): void {
  if (!Object.hasOwn(ALL, name)) return;
  language = name;
  try {
    localStorage.setItem(STORED, name);
  } catch {
    // The choice then lasts as long as the page.
  }
}

/** A text with `{name}` replaced by values, and `{name?one|many}` by the form that a number needs. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const rules = new Intl.PluralRules(language);
  const text = (ALL[language]![key] ?? en[key]).replace(/\{(\w+)\?([^|}]*)\|([^}]*)\}/g, (_, name: string, one: string, many: string) =>
    rules.select(Number(values[name])) === "one" ? one : many,
  );
  return together(text.replace(/\{(\w+)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : whole)));
}

/** No line ends between a number and its unit. */
const together = (text: string): string => text.replace(/(\d) (?=(?:%|[kMG]?bit\/s|kB|MB|[mµ]?s)(?!\p{L}))/gu, "$1\u00a0");

/** A number with the decimal mark of the language. */
export const withMark = (number: string): string => (COMMA.has(language) ? number.replace(".", ",") : number);

/** Parts of a text, one after the other: Chinese has no space after a full stop or a colon. */
export const joined = (...parts: string[]): string => parts.join(language === "zh" ? "" : " ");

/** Whether there is a text of this name. */
export const has = (key: string): key is Key => Object.hasOwn(en, key);

/** Puts the texts into the elements that name them. */
export function translate(root: ParentNode = document): void {
  document.documentElement.lang = TAGS[language] ?? language;
  for (const each of root.querySelectorAll<HTMLElement>("[data-text]")) each.textContent = t(each.dataset["text"] as Key);
  for (const each of root.querySelectorAll<HTMLElement>("[data-label]")) each.setAttribute("aria-label", t(each.dataset["label"] as Key));
  for (const each of root.querySelectorAll<HTMLElement>("[data-title]")) each.title = t(each.dataset["title"] as Key);
}
