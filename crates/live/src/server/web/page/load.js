// The load of the test, in a worker of its own, so that it does not delay the pings.
"use strict";

const PIECE_BYTES = 65536;
const UPLOAD_BYTES = 2 * 1024 * 1024;
// Between two requests a connection rests for a round trip, so they take at least this long, as far as their length allows.
const UPLOAD_MS = 3000;
const MOST_PIECES = 16;
const REPORT_MS = 100;
const RETRY_MS = 200;
const MOST_RETRIES = 20;

let received = 0;
let running = null;
let reports = 0;
let random = null;

function randomBlob() {
  // No compression on the way makes random bytes smaller.
  const bytes = new Uint8Array(UPLOAD_BYTES);
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) crypto.getRandomValues(bytes.subarray(at, at + PIECE_BYTES));
  return new Blob([bytes]);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function repeat(load, once) {
  for (let retries = 0; !load.stop.signal.aborted && retries < MOST_RETRIES; retries++) {
    try {
      if (await once()) retries = 0;
    } catch (error) {
      if (load.stop.signal.aborted) return;
      load.failures++;
    }
    if (!load.stop.signal.aborted) await pause(RETRY_MS);
  }
}

function download(load, flow) {
  return repeat(load, async () => {
    const url = `/test/download?session=${load.session}&key=${load.key}&flow=${flow}`;
    const answer = await fetch(url, { signal: load.stop.signal, cache: "no-store" });
    if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
    const reader = answer.body.getReader();
    let any = false;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return any;
      received += value.byteLength;
      any = true;
    }
  });
}

function upload(load, flow) {
  let pieces = 1;
  return repeat(load, async () => {
    // One request follows the other at once: each connection has at most one of them.
    for (let number = 0; !load.stop.signal.aborted; number++) {
      const began = performance.now();
      const url = `/test/upload?session=${load.session}&key=${load.key}&flow=${flow}&number=${number}`;
      const answer = await fetch(url, { method: "POST", body: new Blob(Array(pieces).fill(random)), signal: load.stop.signal, cache: "no-store" });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      if (performance.now() - began < UPLOAD_MS) pieces = Math.min(2 * pieces, MOST_PIECES);
    }
    return true;
  });
}

function report() {
  const failures = running ? running.failures : 0;
  postMessage({ received, failures, at: performance.timeOrigin + performance.now() });
}

onmessage = ({ data }) => {
  if (data.stop) {
    if (running) running.stop.abort();
    running = null;
    clearInterval(reports);
    report();
    return;
  }
  random ??= randomBlob();
  if (data.prepare) return;
  running = { ...data.start, stop: new AbortController(), failures: 0 };
  for (let flow = 0; flow < running.down; flow++) download(running, flow);
  for (let flow = 0; flow < running.up; flow++) upload(running, flow);
  reports = setInterval(report, REPORT_MS);
  report();
};
