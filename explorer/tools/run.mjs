// Runs experiments in node: node run.mjs simulator.wasm < REQUESTS. Each line of the input is a request, in which `steps` says in how
// many steps it is to be run; with `only_open`, it is not run. Each line of the output is the answer. For tests and measurements.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Engine } from "../src/core/engine";

/** Adds the rows of a chunk to those of each part and name. */
function count(counts, chunk) {
  for (const [part, names] of Object.entries(chunk)) {
    for (const [name, keys] of Object.entries(typeof names === "object" ? names : {})) {
      const rows = Math.max(...Object.values(keys).map((column) => column.length ?? 0));
      counts[`${part} ${name}`] = (counts[`${part} ${name}`] ?? 0) + rows;
    }
  }
}

/** The run of a request: what it answers, how many rows its chunks have, and how long it took. */
function run(engine, { steps = 20, only_open = false, ...input }) {
  const began = performance.now();
  const counts = {};
  const opened = engine.open(input);
  if (opened.kind === "refused") return { refused: opened };
  if (only_open) return { opened };
  for (let step = 1; step <= steps; step++) {
    const stepped = engine.step(step === steps ? opened.duration_ns : Math.floor((opened.duration_ns * step) / steps));
    if ("kind" in stepped) return { opened, refused: stepped };
    count(counts, stepped.chunk);
  }
  const finished = engine.finish();
  if ("kind" in finished) return { opened, refused: finished };
  count(counts, finished.chunk);
  return { opened, summary: finished.summary, counts, wall_ms: performance.now() - began };
}

const engine = await Engine.create(await WebAssembly.compile(readFileSync(process.argv[2])));
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(run(engine, JSON.parse(line)))}\n`);
}
