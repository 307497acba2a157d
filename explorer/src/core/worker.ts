// The worker: runs what the page asks for in slices, so that a newer request does not wait.

import { Engine, type ChunkAnswer } from "./engine";
import type { Answer, Request, RunRequest } from "./protocol";

/** The first message to a worker. */
export interface Start {
  kind: "start";
  module: WebAssembly.Module;
}

/** How long a slice should take: less than half of a frame. */
const SLICE_MS = 6;
/** The shares of the duration by which a run advances: at first, at least, and at most. */
const FIRST_SHARE = 1 / 2000;
const LEAST_SHARE = 1 / 1e6;
const MOST_SHARE = 1 / 8;
/** The same of a long run, in ns and as a share: the load of a line may begin at any time. */
const FIRST_NS = 50e6;
const MOST_NS = 15e9;
const MOST_LONG_SHARE = 1 / 500;
/** By how much a slice may be longer than the one before. */
const MOST_GROWTH = 8;

const scope = self as unknown as {
  onmessage: ((event: MessageEvent<Start | Request>) => void) | null;
  postMessage(message: Answer, transfer: Transferable[]): void;
};

let engines: Promise<{ runs: Engine; checks: Engine }> | undefined;
/** The id of the newest run that was asked for. */
let newest = 0;

scope.onmessage = ({ data }) => {
  if (data.kind === "start") {
    const { module } = data;
    engines = Promise.all([Engine.create(module), Engine.create(module)]).then(([runs, checks]) => ({ runs, checks }));
    return;
  }
  if (data.kind === "cancel") {
    newest = 0;
    return;
  }
  if (data.kind === "run" && data.only_open !== true) newest = data.id;
  answer(data).catch((error: unknown) => send({ kind: "failed", id: data.id, message: String(error) }));
};

async function answer(request: Exclude<Request, { kind: "cancel" }>): Promise<void> {
  if (engines === undefined) throw new Error("the worker was not started");
  const { runs, checks } = await engines;
  if (request.kind === "schema") send({ kind: "schema", id: request.id, schema: checks.schema() });
  else if (request.only_open === true) send({ ...checks.open(request), id: request.id });
  else await run(runs, request);
}

async function run(engine: Engine, request: RunRequest): Promise<void> {
  const { id } = request;
  if (id !== newest) return;
  const began = performance.now();
  const opened = engine.open(request);
  send({ ...opened, id });
  if (opened.kind === "refused") return;
  const { duration_ns } = opened;
  const most_ns = Math.min(duration_ns * MOST_SHARE, Math.max(MOST_NS, duration_ns * MOST_LONG_SHARE));
  let share_ns = Math.min(duration_ns * FIRST_SHARE, FIRST_NS);
  let until_ns = 0;
  for (;;) {
    const slice_began = performance.now();
    until_ns = Math.min(duration_ns, Math.ceil(until_ns + share_ns));
    const stepped = engine.step(until_ns);
    if ("kind" in stepped) return send({ ...stepped, id });
    sendChunk(stepped.chunk, id);
    if (stepped.at_end) break;
    const took_ms = Math.max(performance.now() - slice_began, SLICE_MS / 4);
    const wanted_ns = share_ns * Math.min(SLICE_MS / took_ms, MOST_GROWTH);
    share_ns = Math.min(Math.max(wanted_ns, Math.min(duration_ns * LEAST_SHARE, FIRST_NS)), most_ns);
    await others();
    if (id !== newest) return;
  }
  const finished = engine.finish();
  if ("kind" in finished) return send({ ...finished, id });
  sendChunk(finished.chunk, id);
  send({ kind: "done", id, summary: { ...finished.summary, wall_ms: performance.now() - began } });
}

function sendChunk(chunk: ChunkAnswer, id: number): void {
  const { ports, flows, probes, transfers, capacity, packets } = chunk;
  const parts: object[] = [ports, flows, probes, transfers, capacity, packets];
  const columns = parts.flatMap((names) => Object.values(names)).flatMap((keys: object) => Object.values(keys));
  const transfer = columns.filter((column) => ArrayBuffer.isView(column)).map((column) => column.buffer);
  send({ ...chunk, id }, transfer as ArrayBuffer[]);
}

function send(answer: Answer, transfer: Transferable[] = []): void {
  scope.postMessage(answer, transfer);
}

/** Lets other messages come in. (A timer would wait for 4 ms.) */
const channel = new MessageChannel();
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();
function others(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(null);
  });
}
