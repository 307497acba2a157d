// The test: its phases and its pings, in a worker, so that drawing does not delay them.
"use strict";

const TICK_MS = 5;
const PING_MS = 25;
// TCP repeats a lost ping after a while, and those behind it on the same connection wait: so each ping takes a connection on
// which no other is under way, if there is one.
const CONNECTIONS = 8;
// A data channel repeats nothing, so one is enough. Until then it is open, or there is none.
const CHANNEL_MS = 5000;
const CHANNEL_BYTES = 40;
const REPORT_MS = 100;
const ALIVE_MS = 1000;
const SILENCE_MS = 8000;
const RECENT_MS = 1500;
const IDLE_S = 7;
const COOL_DOWN_S = 4;
const LOADED_S = { least: 8, most: 20 };
// A browser opens six connections to a server; WebSockets do not count among them.
const FLOWS = { download: { down: 6, up: 0 }, upload: { down: 0, up: 6 }, both: { down: 3, up: 3 } };
// A phase ends when the upper envelope of the round trips has stopped to grow, as in the program (client/level.rs).
const LEVEL = { lastMs: 4000, share: 1.05, more: 1, quantile: 0.95 };
const DRAIN = { leastMs: 1000, mostMs: 10000, recentMs: 500, share: 1.5, more: 2 };

const now = () => performance.now();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const origin = `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}`;

class Ended extends Error {
  constructor(reason, detail = "") {
    super(reason);
    this.reason = reason;
    this.detail = detail;
  }
}

function open(path) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(origin + path);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => resolve(socket);
    socket.onerror = socket.onclose = () => reject(new Ended("error_connect"));
  });
}

class Control {
  constructor(socket) {
    this.socket = socket;
    this.answers = [];
    this.waiting = null;
    this.failure = null;
    socket.onmessage = ({ data }) => this.take(JSON.parse(data));
    socket.onerror = socket.onclose = () => this.fail(new Ended("error_lost"));
  }

  take(answer) {
    if (answer.answer === "refused") this.fail(new Ended("error_refused", answer.reason));
    else if (this.waiting) this.waiting.resolve(answer);
    else this.answers.push(answer);
    if (answer.answer !== "refused") this.waiting = null;
  }

  fail(why) {
    this.failure ??= why;
    if (this.waiting) this.waiting.reject(this.failure);
    this.waiting = null;
  }

  ask(message) {
    if (this.failure) throw this.failure;
    this.socket.send(JSON.stringify(message));
  }

  async next() {
    if (this.answers.length) return this.answers.shift();
    if (this.failure) throw this.failure;
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
    });
  }

  // The answer to the last message; those before it may not have been waited for.
  async until(kind) {
    for (;;) {
      const answer = await this.next();
      if (answer.answer === kind) return answer;
    }
  }
}

class Test {
  constructor(port) {
    this.port = port;
    this.pings = [];
    this.open = new Map();
    this.sockets = [];
    this.channel = null;
    this.waited = [];
    this.fromPage = {};
    this.offered = new Promise((resolve) => (this.fromPage.offer = resolve));
    this.unfinished = [];
    this.received = [];
    this.phases = [];
    this.uploaded = 0;
    this.downloaded = 0;
    this.rates = [];
    this.recent = [];
    this.late = 0;
    this.heard = now();
    this.failures = 0;
    port.onmessage = ({ data }) => this.onLoad(data);
  }

  time() {
    return now() - this.start;
  }

  onLoad({ received, failures, at }) {
    if (received !== this.downloaded) this.heard = now();
    this.downloaded = received;
    this.failures = Math.max(this.failures, failures);
    const ms = at - performance.timeOrigin - this.start;
    if (ms >= 0) this.received.push([ms, received]);
  }

  // Times are taken first of all.
  onPong(data, connection) {
    const back = this.time();
    const view = new DataView(data);
    const seq = view.getUint32(0);
    const sent = this.open.get(seq);
    this.heard = now();
    if (connection) connection.open--;
    this.uploaded = Number(view.getBigUint64(12));
    if (sent === undefined) return;
    this.open.delete(seq);
    const ping = this.pings[seq];
    ping[1] = back;
    ping[2] = Math.max(ping[2], this.late);
    // The next tick shows whether the answer had to wait for this worker.
    this.unfinished.push(ping);
    this.recent.push([sent, back - sent]);
  }

  tick() {
    const at = now();
    this.late = Math.max(0, at - this.due);
    this.due = Math.max(this.due + TICK_MS, at);
    for (const ping of this.unfinished) ping[2] = Math.max(ping[2], this.late);
    this.unfinished.length = 0;
    if (this.late > TICK_MS) for (const seq of this.open.keys()) this.pings[seq][2] = Math.max(this.pings[seq][2], this.late);
    if (at < this.nextPing) return;
    this.nextPing = Math.max(this.nextPing + PING_MS, at);
    // What the browser has not sent yet is not measured by its round trip.
    if (this.channel?.bufferedAmount > 0) {
      if (this.pings.length) this.waited.push(this.pings.length - 1);
      return;
    }
    const seq = this.pings.length;
    const number = new Uint8Array(this.channel ? CHANNEL_BYTES : 4);
    new DataView(number.buffer).setUint32(0, seq);
    const sent = this.time();
    this.pings.push([sent, null, 0]);
    this.open.set(seq, sent);
    if (this.channel) this.channel.send(number);
    else this.sendOnFree(number);
  }

  sendOnFree(number) {
    const free = this.sockets.reduce((least, each) => (each.open < least.open ? each : least));
    // In turn, so that none is idle for long.
    this.sockets.push(...this.sockets.splice(this.sockets.indexOf(free), 1));
    free.open++;
    free.socket.send(number);
  }

  check() {
    if (this.control.failure) throw this.control.failure;
    if (this.cancelled) throw new Ended(this.cancelled);
    const isCut = this.sockets.some(({ socket }) => socket.readyState !== WebSocket.OPEN) || (this.channel && this.channel.readyState !== "open");
    if (isCut || now() - this.heard > SILENCE_MS) throw new Ended("error_lost");
    if (now() - this.lastAlive > ALIVE_MS) {
      this.lastAlive = now();
      this.control.ask({ ask: "alive" });
    }
  }

  async run({ secret, parts }) {
    postMessage({ state: "connecting" });
    this.control = new Control(await open("/test/control"));
    this.control.ask({ ask: "hello", secret });
    for (;;) {
      const answer = await this.control.next();
      if (answer.answer === "queued") postMessage({ state: "queued", position: answer.position });
      if (answer.answer === "welcome") {
        this.welcome = answer;
        break;
      }
    }
    const query = `session=${this.welcome.session}&key=${this.welcome.key}`;
    this.channel = await this.openChannel();
    for (let number = 0; number < CONNECTIONS && !this.channel; number++) {
      const each = { socket: await open(`/test/pings?${query}`), open: 0 };
      each.socket.onerror = each.socket.onclose = null;
      each.socket.onmessage = ({ data }) => this.onPong(data, each);
      this.sockets.push(each);
    }
    this.start = this.heard = this.lastAlive = now();
    this.due = this.start + TICK_MS;
    // No ping before the first phase: the server sends its first probe when a ping has come, and on a path without routers
    // sends no other.
    this.nextPing = Infinity;
    this.port.postMessage({ prepare: true });
    const ticks = setInterval(() => this.tick(), TICK_MS);
    const reports = setInterval(() => this.report(), REPORT_MS);
    let reason = null;
    try {
      const phases = ["idle", ...parts, ...(parts.length ? ["cool_down"] : [])];
      postMessage({ state: "begun", phases, version: this.welcome.version });
      for (const [at, kind] of phases.entries()) {
        await this.phase(kind);
        if (FLOWS[kind] && at + 1 < phases.length) await this.drain();
      }
    } catch (error) {
      if (error.reason !== "error_refused" || !this.phases.length) throw error;
      // The server's limit has ended the test; what was measured until then counts.
      reason = error.detail;
      this.phases.at(-1).end_ms = this.time();
    } finally {
      this.port.postMessage({ stop: true });
      clearInterval(ticks);
      clearInterval(reports);
    }
    postMessage({ state: "judging" });
    await this.judge(query, reason);
  }

  // A data channel, or null if there is none in time.
  async openChannel() {
    postMessage({ state: "channel" });
    const late = pause(CHANNEL_MS).then(() => null);
    const offer = await Promise.race([this.offered, late]);
    const channel = this.fromPage.channel;
    if (!offer || !channel) return null;
    const opened = new Promise((resolve) => {
      channel.onopen = () => resolve(channel);
      channel.onclose = channel.onerror = () => resolve(null);
    });
    channel.binaryType = "arraybuffer";
    channel.onmessage = ({ data }) => this.onPong(data, null);
    this.control.ask({ ask: "webrtc", offer });
    const { end } = await this.control.until("webrtc");
    if (!end) return null;
    postMessage({ state: "answered", end });
    return Promise.race([opened, late]);
  }

  async phase(kind) {
    this.control.answers.length = 0;
    this.control.ask({ ask: "phase", phase: kind });
    await this.control.until("noted");
    const flows = FLOWS[kind];
    const most = flows ? LOADED_S.most : kind === "idle" ? IDLE_S : COOL_DOWN_S;
    const begin = this.time();
    const phase = { kind, start_ms: begin, end_ms: begin, levelled: flows ? false : null };
    this.phases.push(phase);
    this.nextPing = Math.min(this.nextPing, now());
    this.most = most;
    postMessage({ state: "phase", kind, begin, most });
    if (flows) this.port.postMessage({ start: { ...flows, session: this.welcome.session, key: this.welcome.key } });
    for (;;) {
      await pause(REPORT_MS);
      this.check();
      const elapsed = this.time() - begin;
      if (elapsed >= most * 1000) break;
      if (flows && this.hasLevelled(begin, elapsed)) {
        phase.levelled = true;
        break;
      }
    }
    phase.end_ms = this.time();
    if (flows) this.port.postMessage({ stop: true });
  }

  hasLevelled(begin, elapsed) {
    if (elapsed < LOADED_S.least * 1000) return false;
    const envelope = (found) => {
      const sorted = found.map((each) => each[1]).sort((a, b) => a - b);
      return sorted[Math.floor((sorted.length - 1) * LEVEL.quantile)];
    };
    const own = this.recent.filter((each) => each[0] >= begin);
    const split = begin + elapsed - LEVEL.lastMs;
    const before = envelope(own.filter((each) => each[0] < split));
    const last = envelope(own.filter((each) => each[0] >= split));
    // Without answers nothing has levelled off.
    return before !== undefined && last !== undefined && last <= before * LEVEL.share + LEVEL.more;
  }

  idleDelay() {
    const idle = this.phases.find((phase) => phase.kind === "idle");
    const found = this.recent.filter((each) => each[0] <= idle.end_ms).map((each) => each[1]).sort((a, b) => a - b);
    return found[Math.floor(found.length / 2)] ?? 0;
  }

  // Waits until the queues that the load has filled are empty again.
  async drain() {
    this.control.ask({ ask: "phase", phase: "idle" });
    postMessage({ state: "drain" });
    const begin = this.time();
    const most = this.idleDelay() * DRAIN.share + DRAIN.more;
    for (;;) {
      await pause(REPORT_MS);
      this.check();
      const elapsed = this.time() - begin;
      const recent = this.recent.filter((each) => each[0] >= this.time() - DRAIN.recentMs);
      const isEmpty = recent.length >= 5 && recent.every((each) => each[1] <= most);
      if ((isEmpty && elapsed > DRAIN.leastMs) || elapsed > DRAIN.mostMs) return;
    }
  }

  report() {
    const at = this.time();
    this.rates.push([at, this.downloaded, this.uploaded]);
    while (this.rates.length > 2 && this.rates[1][0] <= at - 1000) this.rates.shift();
    const first = this.rates[0];
    const rate = (place) => {
      const last = this.rates.at(-1);
      return last[0] > first[0] ? ((last[place] - first[place]) * 8) / (last[0] - first[0]) / 1000 : null;
    };
    const phase = this.phases.at(-1);
    const left = phase && phase.end_ms === phase.start_ms ? Math.max(0, this.most - (at - phase.start_ms) / 1000) : 0;
    const pings = this.recent.slice(this.shown ?? 0);
    this.shown = this.recent.length;
    postMessage({ state: "progress", at, pings, down: rate(1), up: rate(2), left });
  }

  async judge(query, reason) {
    // Pings that have just been sent are not lost.
    const pings = [...this.pings];
    while (pings.length && pings.at(-1)[1] === null && pings.at(-1)[0] > this.time() - RECENT_MS) pings.pop();
    const exact = (ms) => (ms === null ? null : Math.round(ms * 1000) / 1000);
    const samples = {
      way: this.channel ? "webrtc" : "websocket",
      waited: this.waited,
      interval_ms: PING_MS,
      phases: this.phases.map((phase) => ({ ...phase, start_ms: exact(phase.start_ms), end_ms: exact(phase.end_ms) })),
      pings: pings.map((ping) => ping.map(exact)),
      received: this.received.map(([ms, bytes]) => [exact(ms), bytes]),
      reason,
    };
    const answer = await fetch(`/test/samples?${query}`, { method: "POST", body: JSON.stringify(samples), cache: "no-store" });
    if (!answer.ok) throw new Ended("error_refused", await answer.text());
    // A limit of the server is no reason not to ask for the verdict.
    this.control.failure = null;
    this.control.ask({ ask: "finish" });
    const judged = await this.control.until("judged");
    this.control.socket.onclose = null;
    postMessage({ state: "judged", judged, failures: this.failures });
  }
}

let test = null;
onmessage = ({ data, ports }) => {
  if (data.cancel) {
    if (test) test.cancelled = data.cancel;
    return;
  }
  if (data.channel) {
    test.fromPage.channel = data.channel;
    return;
  }
  if (data.offer !== undefined) {
    test.fromPage.offer(data.offer);
    return;
  }
  test = new Test(ports[0]);
  test.run(data).catch((error) => {
    const reason = error.reason ?? "error_lost";
    postMessage({ state: "failed", reason, detail: error.detail ?? String(error) });
  });
};
