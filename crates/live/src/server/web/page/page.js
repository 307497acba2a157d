// The page: what the reader sees and does. The test itself runs in two workers.

import { Channel } from "/channel.js";
import { Chart, picture } from "/drawing.js";
import { Words } from "/words.js";

const LANGUAGES = ["en", "pt", "zh"];
const TAGS = { en: "en", pt: "pt-BR", zh: "zh-Hans" };
const DRAW_MS = 200;
const element = (id) => document.getElementById(id);

let words = new Words("en", {});
let test = null;
let judged = null;
let chart = null;
let shown = { key: "", values: {} };

// The secret is behind the # of the address, which browsers do not send to the server; `public` stands for none.
function secret() {
  const given = decodeURIComponent(location.hash.slice(1)) || element("token").value.trim();
  const first = given.split("-")[0].toLowerCase();
  return first === "public" ? "" : first;
}

function preferred() {
  const asked = navigator.languages ?? [navigator.language];
  const found = asked.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => LANGUAGES.includes(tag));
  return found ?? "en";
}

async function choose(language) {
  const answer = await fetch(`/texts/${language}.json`);
  words = new Words(language, await answer.json());
  document.documentElement.lang = TAGS[language];
  element("language").value = language;
  for (const each of document.querySelectorAll("[data-text]")) each.textContent = words.text(each.dataset.text);
  element("start").disabled = Boolean(test);
  say(shown.key, shown.values);
  if (chart) {
    chart.text = words.text;
    draw();
  }
  if (judged) showResult();
}

function say(key, values = {}) {
  shown = { key, values };
  element("status").textContent = key ? words.text(key, values) : "";
}

function fill(list, texts, tag = "li") {
  list.replaceChildren(
    ...texts.map((text) => {
      const item = document.createElement(tag);
      item.textContent = text;
      return item;
    }),
  );
}

function visible(...ids) {
  for (const id of ["begin", "running", "figure", "result"]) element(id).hidden = !ids.includes(id);
}

function begin() {
  const parts = [...document.querySelectorAll("#parts input:checked")].map((input) => input.value);
  judged = null;
  chart = new Chart(words.text);
  element("error").textContent = "";
  element("start").disabled = true;
  const probe = new Worker("/probe.js");
  const load = new Worker("/load.js");
  const between = new MessageChannel();
  // The load's worker speaks to that of the pings.
  load.onmessage = ({ data }) => between.port1.postMessage(data);
  between.port1.onmessage = ({ data }) => load.postMessage(data);
  probe.onmessage = ({ data }) => onMessage(data);
  probe.onerror = load.onerror = (event) => fail("error_browser", event.message);
  test = { probe, load, channel: new Channel(), drawn: 0 };
  probe.postMessage({ secret: secret(), parts }, [between.port2]);
}

function end() {
  if (test) {
    test.probe.terminate();
    test.load.terminate();
    test.channel.close();
  }
  test = null;
  element("start").disabled = false;
}

function fail(key, detail = "") {
  if (!test) return;
  end();
  visible("begin");
  say("");
  element("token-field").hidden = key !== "error_refused" && Boolean(location.hash);
  element("error").textContent = words.text(key) + (detail && ["error_refused", "error_browser"].includes(key) ? ` ${detail}` : "");
  element("start").focus();
}

// Without a channel, the worker opens WebSockets.
async function openChannel({ probe, channel }) {
  try {
    probe.postMessage({ offer: await channel.open(probe) });
  } catch {
    probe.postMessage({ offer: null });
  }
}

const MESSAGES = {
  channel: () => openChannel(test),
  answered: ({ end: other }) => test.channel.connect(other).catch(() => test?.probe.postMessage({ offer: null })),
  connecting: () => say("connecting"),
  queued: ({ position }) => say("queued", { position: words.number(position, 0) }),
  begun: ({ phases }) => {
    visible("running", "figure");
    fill(element("phases"), phases.map((kind) => words.text(kind)));
    [...element("phases").children].forEach((item, number) => (item.dataset.kind = phases[number]));
    element("running-title").focus();
  },
  phase: ({ kind, begin: at, most }) => {
    chart.begin(kind, at);
    test.most = most;
    for (const item of element("phases").children) {
      if (item.hasAttribute("aria-current")) item.className = "done";
      item.removeAttribute("aria-current");
      if (item.dataset.kind === kind) item.setAttribute("aria-current", "step");
    }
    say("phase_now", { phase: words.text(kind) });
  },
  drain: () => say("draining"),
  progress: (progress) => {
    chart.add(progress);
    const last = progress.pings.at(-1);
    const rate = (mbit) => (mbit === null ? "–" : words.rate(mbit * 1e6));
    if (last) element("now-delay").textContent = words.delay(last[1] * 1e6);
    element("now-down").textContent = rate(progress.down);
    element("now-up").textContent = rate(progress.up);
    element("now-left").textContent = words.text("at_most_seconds", { value: words.number(progress.left, 0) });
    element("progress").value = test.most ? 1 - progress.left / test.most : 0;
    if (performance.now() - test.drawn > DRAW_MS) draw();
  },
  judging: () => say("judging"),
  judged: (found) => {
    judged = found.judged;
    end();
    say("done");
    visible("figure", "result");
    showResult();
    draw();
    element("result-title").focus();
  },
  failed: ({ reason, detail }) => fail(reason, detail),
};

function onMessage(data) {
  if (test) MESSAGES[data.state](data);
}

function draw() {
  if (test) test.drawn = performance.now();
  requestAnimationFrame(() => chart.show(element("chart")));
}

function showResult() {
  const { verdict } = judged.events.at(-1);
  element("grade").textContent = verdict.grade ?? "";
  element("grade").setAttribute("aria-label", words.text("delay_grade", { grade: verdict.grade ?? "" }));
  fill(element("sentences"), words.sentences(judged));
  fill(element("means"), words.means(judged));
  fill(element("heads"), words.heads(), "th");
  for (const head of element("heads").children) head.scope = "col";
  const rows = words.rows(verdict).map((cells) => {
    const row = document.createElement("tr");
    fill(row, cells, "td");
    return row;
  });
  element("rows").replaceChildren(...rows);
  element("way").textContent = words.way(judged);
  const grades = words.grades(verdict).map(({ grade, text, given }) => {
    const row = document.createElement("tr");
    fill(row, [grade, text], "td");
    if (given) row.className = "given";
    if (given) row.setAttribute("aria-current", "true");
    return row;
  });
  element("grades").replaceChildren(...grades);
  fill(element("beyond"), words.beyond(judged));
  fill(element("warnings"), words.notes(judged));
  element("notes").hidden = !words.notes(judged).length;
  element("chart").setAttribute("aria-label", words.text("chart_about"));
}

function name(end) {
  const moment = new Date(judged.events[0].realtime_ns / 1e6);
  return `bufferscope-${moment.toISOString().slice(0, 16).replaceAll(":", "")}.${end}`;
}

function offer(blob, file) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

element("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!test) begin();
});
element("stop").addEventListener("click", () => fail("stopped"));
element("again").addEventListener("click", () => {
  visible("begin");
  say("");
  element("start").focus();
});
element("save").addEventListener("click", () => {
  const lines = judged.events.map((event) => `${JSON.stringify(event)}\n`);
  offer(new Blob(lines, { type: "application/x-ndjson" }), name("jsonl"));
});
element("picture").addEventListener("click", () => {
  const moment = new Date(judged.events[0].realtime_ns / 1e6);
  const about = words.text("picture_about", { time: moment.toLocaleString(words.language) });
  const { verdict } = judged.events.at(-1);
  const drawn = picture(chart, { title: words.text("title"), grade: verdict.grade, sentences: words.sentences(judged), about });
  drawn.toBlob((blob) => offer(blob, name("png")), "image/png");
});
element("language").addEventListener("change", (event) => choose(event.target.value));
// A page that is not seen is slowed down by the browser, and would measure that.
document.addEventListener("visibilitychange", () => {
  if (document.hidden && test) fail("error_hidden");
});
addEventListener("resize", () => chart && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart && draw());
addEventListener("pagehide", end);
element("token-field").hidden = Boolean(location.hash);
choose(preferred());
