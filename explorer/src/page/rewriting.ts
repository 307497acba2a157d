// Changes the text of a TOML file, and keeps everything else, comments included.

/** A statement `key = value` of a table, which may span lines. */
interface Statement {
  key: string[];
  from: number;
  to: number;
}

/** A table of the text: from its header, or the file's beginning, to the next header. */
interface Block {
  path: string[];
  /** Whether the header is `[[path]]`. */
  isEntry: boolean;
  from: number;
  to: number;
  statements: Statement[];
}

const KEY = /^\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=/;
const HEADER = /^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?/;

function keysOf(text: string): string[] {
  const keys = text.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+/g) ?? [];
  return keys.map((key) => (key.startsWith('"') ? String(JSON.parse(key)) : key.startsWith("'") ? key.slice(1, -1) : key));
}

/** Where a value that begins at `at` ends: before the end of its last line, comment included. */
function endOf(text: string, at: number): number {
  let depth = 0;
  while (at < text.length) {
    const rest = text.slice(at, at + 3);
    if (rest === '"""' || rest === "'''") {
      const end = rest === '"""' ? closing(text, at + 3) : text.indexOf("'''", at + 3);
      at = end < 0 ? text.length : end + 3;
      while (text[at] === rest[0]) at++;
    } else if (text[at] === '"') {
      for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === "\\") at++;
      at++;
    } else if (text[at] === "'") {
      at = text.indexOf("'", at + 1) + 1 || text.length;
    } else if (text[at] === "#") {
      at = lineEnd(text, at);
    } else {
      if ("[{".includes(text[at]!)) depth++;
      if ("]}".includes(text[at]!)) depth--;
      if (text[at] === "\n" && depth <= 0) return at;
      at++;
    }
  }
  return text.length;
}

function closing(text: string, at: number): number {
  for (; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text.startsWith('"""', at)) return at;
  }
  return -1;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

function blocksOf(text: string): Block[] {
  let block: Block = { path: [], isEntry: false, from: 0, to: text.length, statements: [] };
  const blocks = [block];
  for (let at = 0; at < text.length; ) {
    const line = text.slice(at, lineEnd(text, at));
    const header = HEADER.exec(line);
    const key = header ? null : KEY.exec(line);
    if (header) {
      block.to = at;
      block = { path: keysOf(header[2]!), isEntry: header[1] === "[[", from: at, to: text.length, statements: [] };
      blocks.push(block);
    } else if (key) {
      const to = endOf(text, at + key[0].length);
      block.statements.push({ key: keysOf(key[1]!), from: at, to });
      at = to + 1;
      continue;
    }
    at += line.length + 1;
  }
  return blocks;
}

const begins = (path: string[], by: string[]): boolean => by.every((key, at) => path[at] === key);

/** The text without the tables and statements below a top-level key. */
export function withoutTable(text: string, key: string): string {
  const blocks = blocksOf(text);
  const cuts: [number, number][] = [
    ...blocks.filter((block) => block.path[0] === key).map((block): [number, number] => [block.from, block.to]),
    ...blocks[0]!.statements.filter((each) => each.key[0] === key).map((each): [number, number] => [each.from, each.to + 1]),
  ];
  return cut(text, cuts).replace(/\n{2,}$/, "\n");
}

function cut(text: string, cuts: [number, number][]): string {
  const kept: string[] = [];
  let at = 0;
  for (const [from, to] of cuts.sort((a, b) => a[0] - b[0])) {
    if (from > at) kept.push(text.slice(at, from));
    at = Math.max(at, to);
  }
  return kept.join("") + text.slice(at);
}

/**
 * The text in which a key of a table has another value.
 *
 * The table is the file itself (`table` is empty), a table such as `tcp`, or the entry number `entry` of a list of tables
 * such as `link`. `value` is TOML on one line. Null if the table is not found as a table of its own.
 */
export function withValue(text: string, table: string[], entry: number | null, key: string, value: string): string | null {
  const blocks = blocksOf(text);
  let own: Block[];
  if (entry === null) {
    own = blocks.filter((block) => !block.isEntry && begins(block.path, table) && (table.length || !block.path.length));
    if (!own.some((block) => block.path.length === table.length)) {
      const isInline = blocks[0]!.statements.some((each) => each.key[0] === table[0]);
      return isInline || own.length ? null : `${text.replace(/\n*$/, "\n")}\n[${table.join(".")}]\n${key} = ${value}\n`;
    }
  } else {
    let number = -1;
    own = blocks.filter((block) => {
      if (block.isEntry && block.path.length === 1 && block.path[0] === table[0]) number++;
      return number === entry && begins(block.path, table);
    });
  }
  const main = own.find((block) => block.path.length === table.length);
  if (!main) return null;
  const old = main.statements.filter((each) => each.key[0] === key);
  const below = own.filter((block) => block.path.length > table.length && block.path[table.length] === key);
  const last = main.statements.filter((each) => each.key[0] !== key).at(-1);
  const cuts: [number, number][] = [
    ...old.slice(1).map((each): [number, number] => [each.from, each.to + 1]),
    ...below.map((block): [number, number] => [block.from, block.to]),
  ];
  const first = old[0];
  const line = `${key} = ${value}`;
  // Positions before the cuts stay; cuts are made from the end.
  const at = first ? first.from : last ? Math.min(last.to + 1, text.length) : lineEnd(text, main.from) + 1;
  const end = first ? first.to : at;
  const comment = first ? /\s*#[^\n"'{}[\]]*$/.exec(text.slice(first.from, first.to)) : null;
  const insert = first ? line + (comment?.[0] ?? "") : `${at > 0 && text[at - 1] !== "\n" ? "\n" : ""}${line}\n`;
  const after = cuts.filter(([from]) => from >= end);
  const earlier = cuts.filter(([from]) => from < at);
  const rest = cut(text.slice(end), after.map(([from, to]): [number, number] => [from - end, to - end]));
  return cut(text.slice(0, at), earlier) + insert + rest;
}
