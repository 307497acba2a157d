// A run on the simulator, without a worker: one call after another.

import type { Chunk, Opened, Refused, RunRequest, Summary } from "./protocol";
import { Wasm, type Columns } from "./wasm";

/** Everything of a request that the simulator reads. */
export type RunInput = Omit<RunRequest, "kind" | "id" | "only_open">;
/** What the simulator answers, without the request's id, which it does not know. */
export type OpenedAnswer = Omit<Opened, "id">;
export type RefusedAnswer = Omit<Refused, "id">;
export type ChunkAnswer = Omit<Chunk, "id">;
export type SummaryAnswer = Omit<Summary, "wall_ms">;

/** The simulator with at most one run. */
export class Engine {
  private constructor(private readonly wasm: Wasm) {}

  static async create(module: WebAssembly.Module): Promise<Engine> {
    return new Engine(await Wasm.instantiate(module));
  }

  /** Opens an experiment; the run that there may be is over. */
  open(input: RunInput): OpenedAnswer | RefusedAnswer {
    const kind = this.wasm.open(JSON.stringify(input)) ? "opened" : "refused";
    return { kind, ...(this.wasm.text() as object) } as OpenedAnswer | RefusedAnswer;
  }

  /** Advances the run to a time, at most to its end. */
  step(until_ns: number): { chunk: ChunkAnswer; at_end: boolean } | RefusedAnswer {
    const code = this.wasm.step(until_ns);
    if (code === 2) return this.refused();
    return { chunk: chunk(this.wasm.columns(), this.wasm.now()), at_end: code === 1 };
  }

  /** Ends a run that is at its end: answers to probes may still come. */
  finish(): { chunk: ChunkAnswer; summary: SummaryAnswer } | RefusedAnswer {
    const until_ns = this.wasm.now();
    if (this.wasm.finish() === 2) return this.refused();
    const last = chunk(this.wasm.columns(), until_ns);
    this.wasm.summary();
    return { chunk: last, summary: this.wasm.text() as SummaryAnswer };
  }

  /** The JSON Schema of experiments. */
  schema(): Record<string, unknown> {
    this.wasm.schema();
    return this.wasm.text() as Record<string, unknown>;
  }

  private refused(): RefusedAnswer {
    return { kind: "refused", ...(this.wasm.text() as object) } as RefusedAnswer;
  }
}

function chunk(columns: Columns, until_ns: number): ChunkAnswer {
  const empty = { ports: {}, flows: {}, probes: {}, transfers: {}, capacity: {}, packets: {} };
  return { kind: "chunk", until_ns, ...empty, ...columns } as unknown as ChunkAnswer;
}
