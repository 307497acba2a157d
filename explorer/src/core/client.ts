// The page's side of the worker.

import type { Answer, Chunk, Done, Failed, Opened, Refused, RunRequest } from "./protocol";
import { compile } from "./wasm";
import type { Start } from "./worker";
import wasm from "virtual:wasm";
import source from "virtual:worker";

/** What a page gives for a run: a request without what the client adds. */
export type RunOptions = Omit<RunRequest, "kind" | "id" | "only_open">;

/** What happens to a run, in this order. None is called once a newer run was asked for. */
export interface Listener {
  opened?(opened: Opened): void;
  refused?(refused: Refused): void;
  chunk?(chunk: Chunk): void;
  done?(done: Done): void;
  /** The simulator itself failed. The next run has a new worker. */
  failed?(failed: Failed): void;
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** The simulator, compiled once for all clients of the page. */
function simulator(): Promise<WebAssembly.Module> {
  compiled ??= compile(Uint8Array.from(atob(wasm), (character) => character.charCodeAt(0)));
  return compiled;
}

/** A worker with at most one run. A page that compares two runs has two clients. */
export class Client {
  private worker: Worker | undefined;
  private last = 0;
  private running: { id: number; listener: Listener } | undefined;
  private readonly asked = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>();

  /** Begins to load the simulator, so that the first run need not wait. */
  constructor() {
    this.worker = this.start();
  }

  /** Runs an experiment instead of the one that runs now, if one does. Returns the run's id. */
  run(options: RunOptions, listener: Listener): number {
    const id = ++this.last;
    this.running = { id, listener };
    this.post({ kind: "run", id, ...options });
    return id;
  }

  /** Checks an experiment, without a run; a run that there is goes on. */
  async check(options: RunOptions): Promise<Opened | Refused> {
    const id = ++this.last;
    return (await this.ask(id, { kind: "run", id, only_open: true, ...options })) as Opened | Refused;
  }

  /** The JSON Schema of experiments. */
  async schema(): Promise<Record<string, unknown>> {
    const id = ++this.last;
    const answer = await this.ask(id, { kind: "schema", id });
    return (answer as Extract<Answer, { kind: "schema" }>).schema;
  }

  /** Stops the run, if there is one. */
  cancel(): void {
    this.running = undefined;
    this.worker?.postMessage({ kind: "cancel" });
  }

  /** Ends the worker at once, whatever it does. The next run starts another one. */
  terminate(): void {
    this.running = undefined;
    this.worker?.terminate();
    this.worker = undefined;
    for (const { reject } of this.asked.values()) reject(new Error("the simulator was stopped"));
    this.asked.clear();
  }

  private start(): Worker {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (worker === this.worker) this.receive(data);
    };
    worker.onerror = (event) => {
      if (worker === this.worker) this.fail(event.message);
    };
    return worker;
  }

  private ask(id: number, message: RunRequest | { kind: "schema"; id: number }): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.post(message);
    });
  }

  private readonly started = new WeakMap<Worker, Promise<void>>();

  private post(message: RunRequest | { kind: "schema"; id: number }): void {
    const worker = (this.worker ??= this.start());
    let ready = this.started.get(worker);
    if (ready === undefined) {
      ready = simulator().then((module) => worker.postMessage({ kind: "start", module } satisfies Start));
      this.started.set(worker, ready);
    }
    ready.then(
      () => worker.postMessage(message),
      (error: unknown) => this.fail(String(error)),
    );
  }

  private receive(answer: Answer): void {
    if (answer.kind === "failed") return this.fail(answer.message);
    const asked = this.asked.get(answer.id);
    if (asked !== undefined) {
      this.asked.delete(answer.id);
      asked.resolve(answer);
      return;
    }
    if (answer.id !== this.running?.id) return;
    const { listener } = this.running;
    if (answer.kind === "opened") listener.opened?.(answer);
    else if (answer.kind === "refused") listener.refused?.(answer);
    else if (answer.kind === "chunk") listener.chunk?.(answer);
    else if (answer.kind === "done") listener.done?.(answer);
  }

  private fail(message: string): void {
    const running = this.running;
    this.terminate();
    running?.listener.failed?.({ kind: "failed", id: running.id, message });
  }
}
