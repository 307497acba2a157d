// Runs experiments in a browser, for tests and measurements: a page with the client and without anything to see.

import { Client, type RunOptions } from "../src/core/client";
import type { Answer, Chunk } from "../src/core/protocol";

/** What happened to a run: the kinds of its answers in order, when each came, and the last one. */
interface Outcome {
  kinds: string[];
  /** Since the run was asked for. */
  times_ms: number[];
  answer: Answer;
  /** Rows of each part's columns. */
  rows: Record<string, number>;
  /** Bytes of all columns. */
  bytes: number;
}

function run(client: Client, options: RunOptions): Promise<Outcome> {
  const began = performance.now();
  return new Promise((resolve) => {
    const outcome: Omit<Outcome, "answer"> = { kinds: [], times_ms: [], rows: {}, bytes: 0 };
    const note = (answer: Answer): void => {
      outcome.kinds.push(answer.kind);
      outcome.times_ms.push(performance.now() - began);
    };
    const end = (answer: Answer): void => {
      note(answer);
      resolve({ ...outcome, answer });
    };
    const count = (chunk: Chunk): void => {
      note(chunk);
      for (const part of ["ports", "flows", "probes", "transfers", "capacity", "packets"] as const) {
        for (const [name, columns] of Object.entries(chunk[part])) {
          const arrays = Object.values(columns as object).filter((column) => ArrayBuffer.isView(column));
          const key = `${part} ${name}`;
          outcome.rows[key] = (outcome.rows[key] ?? 0) + ((arrays[0] as Float64Array | undefined)?.length ?? 0);
          outcome.bytes += arrays.reduce((sum, column) => sum + column.byteLength, 0);
        }
      }
    };
    client.run(options, { opened: note, refused: end, chunk: count, done: end, failed: end });
  });
}

Object.assign(window, { Client, client: new Client(), run });
