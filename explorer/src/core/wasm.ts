// The simulator as a WebAssembly module: its exports, and what is in its memory.

/** What the module exports; `crates/explorer/src/abi.rs` describes each. */
interface Exports {
  memory: WebAssembly.Memory;
  bs_input(length: number): number;
  bs_open(): number;
  bs_step(until_ns: number): number;
  bs_finish(): number;
  bs_summary(): void;
  bs_schema(): void;
  bs_now(): number;
  bs_text(): number;
  bs_text_length(): number;
  bs_columns(): number;
}

export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** Where a column is: its type, its first byte, and how many numbers it has. */
type Place = ["f64" | "u32" | "u16" | "u8", number, number];

/** Columns, and single values beside them, by part, name and key. */
export type Columns = Record<string, Record<string, Record<string, Column | number>>>;

/** Compiles the module, which is compressed with gzip. */
export async function compile(compressed: Uint8Array<ArrayBuffer>): Promise<WebAssembly.Module> {
  const plain = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(plain).arrayBuffer());
}

/** An instance of the module, with a memory of its own. */
export class Wasm {
  private readonly exports: Exports;

  private constructor(instance: WebAssembly.Instance) {
    this.exports = instance.exports as unknown as Exports;
  }

  static async instantiate(module: WebAssembly.Module): Promise<Wasm> {
    return new Wasm(await WebAssembly.instantiate(module, {}));
  }

  /** Opens a request, written as JSON. Returns whether a run can begin. The answer is then the text. */
  open(request: string): boolean {
    const bytes = new TextEncoder().encode(request);
    const begins = this.exports.bs_input(bytes.length);
    new Uint8Array(this.exports.memory.buffer, begins, bytes.length).set(bytes);
    return this.exports.bs_open() === 0;
  }

  /** Advances the run: 0 it goes on, 1 it is at its end, 2 it is refused. */
  step(until_ns: number): number {
    return this.exports.bs_step(until_ns);
  }

  /** Ends the run: 0, or 2 if it is refused. */
  finish(): number {
    return this.exports.bs_finish();
  }

  /** The summary becomes the text. */
  summary(): void {
    this.exports.bs_summary();
  }

  /** The schema of experiments becomes the text. */
  schema(): void {
    this.exports.bs_schema();
  }

  now(): number {
    return this.exports.bs_now();
  }

  /** The text of the last call, which is JSON. */
  text(): unknown {
    const { memory } = this.exports;
    const bytes = new Uint8Array(memory.buffer, this.exports.bs_text(), this.exports.bs_text_length());
    return JSON.parse(new TextDecoder().decode(bytes));
  }

  /** Copies of the columns of the last call, of which the text is the directory. */
  columns(): Columns {
    const { buffer } = this.exports.memory;
    const first = this.exports.bs_columns();
    const column = (place: Place | number): Column | number => {
      if (typeof place === "number") return place;
      const [kind, begins, count] = place;
      const at = first + begins;
      if (kind === "f64") return new Float64Array(buffer, at, count).slice();
      if (kind === "u32") return new Uint32Array(buffer, at, count).slice();
      if (kind === "u16") return new Uint16Array(buffer, at, count).slice();
      return new Uint8Array(buffer, at, count).slice();
    };
    const map = <A, B>(from: Record<string, A>, change: (value: A) => B): Record<string, B> =>
      Object.fromEntries(Object.entries(from).map(([key, value]) => [key, change(value)]));
    const directory = this.text() as Record<string, Record<string, Record<string, Place | number>>>;
    return map(directory, (names) => map(names, (keys) => map(keys, column)));
  }
}
