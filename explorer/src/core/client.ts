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

/** How long a newer request waits for a worker that is at work, and for one that has never answered. */
const PATIENCE_MS = 500;
const PATIENCE_AT_FIRST_MS = 10_000;

type Message = RunRequest | { kind: "schema"; id: number };

let script: string | undefined;

/** A worker with at most one run. A page that compares two runs has two clients. */
export class Client {
  private worker: Worker | undefined;
  private last = 0;
  private running: { id: number; listener: Listener } | undefined;
  private readonly asked = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>();
  /** Requests of which nothing was heard yet. */
  private readonly waiting = new Map<number, Message>();
  /** When the worker last sent something; 0: never. */
  private heard = 0;

  /** Begins to load the simulator, so that the first run need not wait. */
  constructor() {
    try {
      this.worker = this.start();
    } catch {
      // The first request says so.
    }
  }

  /** Runs an experiment instead of the one that runs now, if one does. Returns the run's id. */
  run(options: RunOptions, listener: Listener): number {
    const id = ++this.last;
    const isBusy = this.running !== undefined;
    this.running = { id, listener };
    this.send({ kind: "run", id, ...options }, isBusy);
    return id;
  }

  /** Checks an experiment, without a run; a run that there is goes on. */
  async check(options: RunOptions): Promise<Opened | Refused> {
    const id = ++this.last;
    return (await this.ask({ kind: "run", id, only_open: true, ...options })) as Opened | Refused;
  }

  /** The JSON Schema of experiments. */
  async schema(): Promise<Record<string, unknown>> {
    const id = ++this.last;
    const answer = await this.ask({ kind: "schema", id });
    return (answer as Extract<Answer, { kind: "schema" }>).schema;
  }

  /** Stops the run, if there is one. */
  cancel(): void {
    this.running = undefined;
    this.worker?.postMessage({ kind: "cancel" });
  }

  /** Ends the worker at once, whatever it does. The next run starts another one. */
  terminate(reason = "the simulator was stopped"): void {
    this.running = undefined;
    this.end();
    for (const { reject } of this.asked.values()) reject(new Error(reason));
    this.asked.clear();
    this.waiting.clear();
  }

  private end(): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.heard = 0;
  }

  private start(): Worker {
    script ??= URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(script);
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (worker === this.worker) this.receive(data);
    };
    worker.onerror = (event) => {
      if (worker === this.worker) this.fail(event.message || "its worker did not start");
    };
    return worker;
  }

  private ask(message: Message): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.asked.set(message.id, { resolve, reject });
      this.send(message, this.running !== undefined);
    });
  }

  // Sends a request. A worker that is so busy with an older one that nothing is heard of it is replaced.
  private send(message: Message, isBusy: boolean): void {
    const wasWaiting = this.waiting.size > 0;
    this.waiting.set(message.id, message);
    this.post(message);
    if (message.kind !== "run" || (!isBusy && !wasWaiting)) return;
    const { worker } = this;
    const sent = performance.now();
    setTimeout(() => {
      // Answers may have come while the page itself was busy.
      setTimeout(() => {
        if (worker === this.worker && this.waiting.has(message.id) && this.heard < sent) this.replace();
      });
    }, this.heard > 0 ? PATIENCE_MS : PATIENCE_AT_FIRST_MS);
  }

  /** Ends the worker, and asks another one for what is still wanted: the newest run or check, and schemas. */
  private replace(): void {
    this.end();
    const { running } = this;
    if (running && !this.waiting.has(running.id)) {
      this.running = undefined;
      running.listener.failed?.({ kind: "failed", id: running.id, message: "a newer request took its place" });
    }
    const wanted = [...this.waiting.values()];
    const newest = wanted.filter((each) => each.kind === "run").at(-1);
    for (const each of wanted) {
      if (each === newest || each.kind === "schema") {
        this.post(each);
        continue;
      }
      this.waiting.delete(each.id);
      this.asked.get(each.id)?.reject(new Error("a newer request took its place"));
      this.asked.delete(each.id);
    }
  }

  private readonly started = new WeakMap<Worker, Promise<void>>();

  private post(message: Message): void {
    let worker: Worker;
    try {
      worker = this.worker ??= this.start();
    } catch (error) {
      queueMicrotask(() => this.fail(String(error)));
      return;
    }
    let ready = this.started.get(worker);
    if (ready === undefined) {
      ready = simulator().then((module) => worker.postMessage({ kind: "start", module } satisfies Start));
      this.started.set(worker, ready);
    }
    ready.then(
      () => worker.postMessage(message),
      (error: unknown) => worker === this.worker && this.fail(String(error)),
    );
  }

  private receive(answer: Answer): void {
    this.heard = performance.now();
    if (answer.kind === "failed") return this.fail(answer.message);
    // Requests are answered in their order.
    for (const id of this.waiting.keys()) if (id <= answer.id) this.waiting.delete(id);
    const asked = this.asked.get(answer.id);
    if (asked !== undefined) {
      this.asked.delete(answer.id);
      asked.resolve(answer);
      return;
    }
    if (answer.id !== this.running?.id) return;
    const { listener } = this.running;
    if (answer.kind === "done" || answer.kind === "refused") this.running = undefined;
    if (answer.kind === "opened") listener.opened?.(answer);
    else if (answer.kind === "refused") listener.refused?.(answer);
    else if (answer.kind === "chunk") listener.chunk?.(answer);
    else if (answer.kind === "done") listener.done?.(answer);
  }

  private fail(message: string): void {
    const running = this.running;
    this.terminate(message);
    running?.listener.failed?.({ kind: "failed", id: running.id, message });
  }
}
