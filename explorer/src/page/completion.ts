// What may be written at a place of an experiment's file: keys and values from the JSON Schema, names from the file. The
// file may have errors, so only the lines around the place are read, and not as TOML.

interface Node {
  $ref?: string;
  anyOf?: Node[];
  oneOf?: Node[];
  properties?: Record<string, Node>;
  items?: Node;
  const?: unknown;
  enum?: unknown[];
  type?: string | string[];
  default?: unknown;
  examples?: unknown[];
  description?: string;
}

export interface Completion {
  /** The part of the text that a choice replaces. */
  from: number;
  to: number;
  options: { text: string; about: string }[];
}

const MOST_OPTIONS = 60;
const HEADER = /^\s*\[{1,2}([^\]]+)\]{1,2}/;

/** Where a place is: the tables around it, the keys that these have so far, and what is begun there. */
interface Place {
  path: string[];
  /** `key = "value"` pairs of the innermost table, which decide what else it may have. */
  beside: Map<string, string>;
  /** The key whose value is begun; null: a key is begun. */
  key: string | null;
  begun: string;
  isQuoted: boolean;
}

function pairsOf(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of text.matchAll(/([A-Za-z0-9_-]+)\s*=\s*(?:"([^"\n]*)")?/g)) found.set(match[1]!, match[2] ?? "");
  return found;
}

function placeOf(text: string, caret: number): Place | null {
  const lines = text.slice(0, caret).split("\n");
  const line = lines.at(-1)!;
  if (/^\s*#/.test(line) || HEADER.test(line)) return null;
  let header = lines.length - 2;
  while (header >= 0 && !HEADER.test(lines[header]!)) header--;
  const path = header >= 0 ? HEADER.exec(lines[header]!)![1]!.split(".").map((key) => key.trim().replace(/^"|"$/g, "")) : [];
  const start = lines.slice(0, header + 1).join("\n").length;
  const rest = text.slice(start + (header >= 0 ? 1 : 0));
  const end = rest.search(/^\s*\[/m);
  let beside = pairsOf(end < 0 ? rest : rest.slice(0, end));
  // The line so far: keys, inline tables and a value that is begun.
  const open: number[] = [];
  let at = 0;
  let key: string[] | null = null;
  let begun = 0;
  let quote = "";
  const inner: string[][] = [];
  for (; at < line.length; at++) {
    const sign = line[at]!;
    if (quote) {
      if (sign === quote) quote = "";
      continue;
    }
    if (sign === '"' || sign === "'") {
      quote = sign;
      if (key) begun = at;
    } else if (sign === "#") return null;
    else if (sign === "=") {
      key = line.slice(begun, at).trim().split(".").map((each) => each.trim());
      begun = at + 1;
    } else if (sign === "{") {
      inner.push(key ?? []);
      open.push(at);
      key = null;
      begun = at + 1;
    } else if (sign === "}") {
      inner.pop();
      open.pop();
      key = null;
      begun = at + 1;
    } else if (sign === ",") {
      if (line[at - 1] !== undefined && !/\[[^\]]*$/.test(line.slice(0, at))) key = null;
      begun = at + 1;
    } else if (sign === "[") begun = at + 1;
  }
  path.push(...inner.flat());
  if (open.length) beside = pairsOf(line.slice(open.at(-1)!));
  let word = line.slice(begun).replace(/^\s+/, "");
  if (key === null) {
    const keys = word.split(".");
    word = keys.pop()!;
    path.push(...keys);
    if (keys.length) beside = new Map();
  } else path.push(...key.slice(0, -1));
  const isQuoted = /^["']/.test(word);
  return { path, beside, key: key?.at(-1) ?? null, begun: isQuoted ? word.slice(1) : word, isQuoted };
}

export class Completer {
  private readonly definitions: Record<string, Node>;

  constructor(private readonly schema: Record<string, unknown>) {
    this.definitions = (schema["$defs"] ?? {}) as Record<string, Node>;
  }

  /** What may be written at the caret; null if nothing is known. */
  at(text: string, caret: number): Completion | null {
    const place = placeOf(text, caret);
    if (!place) return null;
    let nodes = this.alternatives(this.schema as Node);
    for (const [depth, key] of place.path.entries()) {
      const isLast = depth === place.path.length - 1;
      nodes = nodes.flatMap((node) => this.alternatives(node.properties?.[key])).flatMap((node) => (node.items ? this.alternatives(node.items) : [node]));
      if (isLast && !nodes.length) return null;
    }
    const suiting = nodes.filter((node) => this.suits(node, place.beside));
    const options = place.key === null ? this.keys(suiting, place) : this.values(suiting, place, text);
    const begun = place.begun.toLowerCase();
    const fitting = options.filter((each) => each.text.replace(/^"/, "").toLowerCase().startsWith(begun));
    if (!fitting.length) return null;
    return { from: caret - place.begun.length - (place.isQuoted ? 1 : 0), to: caret + (place.isQuoted && text[caret] === '"' ? 1 : 0), options: fitting.slice(0, MOST_OPTIONS) };
  }

  private alternatives(node: Node | undefined, depth = 0): Node[] {
    if (!node || depth > 8) return [];
    const chosen = node.$ref ? this.alternatives(this.definitions[node.$ref.replace("#/$defs/", "")], depth + 1) : [];
    const some = [...(node.oneOf ?? []), ...(node.anyOf ?? [])].flatMap((each) => this.alternatives(each, depth + 1));
    const own = node.properties || node.items || node.enum || node.const !== undefined || node.type ? [node] : [];
    return [...own, ...some, ...chosen];
  }

  // Of the kinds of a table, those whose tag the file has, such as `kind = "tcp"`.
  private suits(node: Node, beside: Map<string, string>): boolean {
    return Object.entries(node.properties ?? {}).every(([key, value]) => value.const === undefined || !beside.get(key) || beside.get(key) === value.const);
  }

  private keys(nodes: Node[], place: Place): Completion["options"] {
    const found = new Map<string, string>();
    for (const node of nodes) {
      for (const [key, value] of Object.entries(node.properties ?? {})) {
        if (key !== place.begun && place.beside.has(key)) continue;
        if (!found.has(key)) found.set(key, value.description ?? "");
      }
    }
    return [...found].map(([key, about]) => ({ text: `${key} = `, about }));
  }

  private values(nodes: Node[], place: Place, text: string): Completion["options"] {
    const found = new Map<string, string>();
    const add = (value: unknown, about: string): void => {
      if (value === undefined || value === null || typeof value === "object") return;
      const written = typeof value === "string" ? JSON.stringify(value) : String(value);
      if (!found.has(written)) found.set(written, about);
    };
    if (["from", "to", "ends"].includes(place.key!)) {
      for (const [, names] of text.matchAll(/^\s*ends\s*=\s*\[([^\]]*)\]/gm)) {
        for (const [, name] of names!.matchAll(/"([^"]+)"/g)) add(name, "");
      }
    }
    for (const node of nodes) {
      const property = node.properties?.[place.key!];
      if (property?.const !== undefined) add(property.const, node.description ?? "");
      for (const each of this.alternatives(property).flatMap((value) => (value.items ? [value, ...this.alternatives(value.items)] : [value]))) {
        const about = property?.description ?? "";
        add(each.const, each.description ?? about);
        for (const value of each.enum ?? []) add(value, about);
        if (each.type === "boolean") for (const value of [true, false]) add(value, about);
        add(each.default, about);
        for (const value of each.examples ?? []) add(value, about);
      }
      if (property) {
        add(property.default, property.description ?? "");
        for (const value of property.examples ?? []) add(value, property.description ?? "");
      }
    }
    return [...found].map(([value, about]) => ({ text: value, about }));
  }
}
