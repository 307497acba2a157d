// The page: connects the state, its runs, the picture and the controls.

import { Client } from "../core/client";
import type { Refused } from "../core/protocol";
import { FIRST, lineWords, PRESETS, presetText, presetWatch } from "../presets/index";
import { TOURS } from "../tours/index";
import { Cards, partTitles } from "./cards";
import { colours, onScheme } from "./colours";
import { Completer } from "./completion";
import { controlsOf, disciplineName, type Control } from "./controls";
import { drawNetwork } from "./drawing";
import { Editor } from "./editor";
import { gifOf } from "./animation";
import { commandOf, csvOf, experimentOf, exportOf, FILE_BEFORE, fileName, needsFile, save, svgOf } from "./exports";
import { Flows } from "./flows";
import { Graphs } from "./graphs";
import { fragmentOf, LinkError, MOST_FRAGMENT, openFragment } from "./link";
import { meaning, type Meaning } from "./meaning";
import { showMeaning } from "./effects";
import { Player, SPEEDS } from "./player";
import { panelsOf } from "./series";
import { documentAt, segmentAt, Session, type Result } from "./session";
import { play, turns } from "./sound";
import { scheduled } from "./schedule";
import { fullest, Stage, type Scene } from "./stage";
import { fresh, History, MOST_CHANGES, withSet, type State } from "./state";
import { choose, current, LANGUAGES, t, translate } from "./texts";
import { Tour } from "./tour";
import { brief, fixed, rateWords, timeWords } from "./units";
import { sentence, verdict } from "./words";

const element = <Kind extends HTMLElement = HTMLElement>(id: string): Kind => document.getElementById(id) as Kind;
const quiet = matchMedia("(prefers-reduced-motion: reduce)");

const history = new History(fresh(FIRST, presetText(FIRST)!));
const player = new Player();
const client = new Client();
const session = new Session(client);
const earlier = new Session(new Client());
/** Runs again for the packets of a later time, if the log has no room for all. */
const later = new Session(new Client());
const stage = new Stage(element("stage-now").querySelector("canvas")!);
const stageBefore = new Stage(element("stage-before").querySelector("canvas")!);

let shown: Result | null = null;
let before: Result | null = null;
let found: Meaning | null = null;
let foundBefore: Meaning | null = null;
let flows: Flows | null = null;
let flowsBefore: Flows | null = null;
let problem: Refused | null = null;
/** Whether the problem is the simulator's own, not one of the experiment. */
let hasFailed = false;
let palette = colours();
let isDue = true;
let seriesDue = false;
let lastSeries = 0;
let lastWords = 0;
let lastSpoken = "";
let shownPort = "";
let segmentShown: unknown = null;
/** Where the time of a new picture begins: at a moment worth looking at, or where the load does; null: where it is. */
let opening: "moment" | "start" | null = "moment";

const cards = new Cards(element("cards"), changed);
const graphs = new Graphs(element("charts"), (at) => seek(at));
// The text has what was set for the whole run, and no change during it.
const editor = new Editor((toml) => go(fresh(null, toml, { seed: history.now.seed, member: history.now.member, files: history.now.files, changes: history.now.changes, watch: history.now.watch }), "editor"), async () => new Completer(await client.schema()));
const tour = new Tour(element("tour"), {
  go: (state) => {
    drop();
    go(state, "", "start");
  },
  keep: () => keep(true),
  read: () => (shown && found && shown.state === history.now ? { result: shown, meaning: found, before: foundBefore, t: player.t, now: documentAt(shown.state, shown.run.opened, player.t) } : null),
  ended: () => (element<HTMLSelectElement>("tour-choice").value = ""),
});

// ---- The state and its runs

/** Makes a state the present one, and runs it. */
function go(state: State, key = "", from: typeof opening = null): void {
  history.push(state, key);
  if (from) opening = from;
  refresh();
}

function refresh(): void {
  buttons();
  remember();
  const state = history.now;
  document.documentElement.dataset["busy"] = "";
  void session.start(state, {
    opened: (result) => {
      problem = null;
      player.end = result.run.duration_ns;
      if (opening) {
        player.t = beginning(result);
        player.playing = !quiet.matches;
      }
    },
    progress: (result) => {
      element<HTMLProgressElement>("progress").value = result.run.until_ns / result.run.duration_ns;
      // The picture of the run before stays until the new one has come as far.
      if (result.run.until_ns >= Math.min(player.t, result.run.duration_ns)) show(result);
    },
    done: (result) => {
      show(result);
      found = meaning(result);
      showNumbers();
      if (opening === "moment" && quiet.matches) player.t = filled(result);
      opening = null;
      seriesDue = true;
      lastSeries = 0;
      tour.check();
      const { warnings, left_out } = result.run.summary!;
      editor.showNotes([...result.run.opened.notes, ...warnings, ...left_out]);
      delete document.documentElement.dataset["busy"];
      speak(`${sentence(result, player.t)} ${verdict(found)}`);
    },
    refused: (refused) => {
      problem = refused;
      hasFailed = false;
      delete document.documentElement.dataset["busy"];
      showProblem();
    },
    failed: (message) => {
      problem = { kind: "refused", id: 0, message: failure(message), problems: [] };
      hasFailed = true;
      delete document.documentElement.dataset["busy"];
      showProblem();
    },
  });
}

/** Why the simulator does not run: what the browser lacks, or its own message. */
function failure(message: string): string {
  const missing = ["WebAssembly", "Worker", "DecompressionStream"].filter((each) => !(each in globalThis));
  return missing.length ? t("failed.browser", { what: missing.join(", ") }) : t("failed", { message });
}

const BEFORE_LOAD_NS = 0.3e9;

/** Shortly before the load begins. */
function beginning({ run, port, segments }: Result): number {
  const starts = segments[0]!.network.loads(port).map((each) => each.start_ns);
  return starts.length ? Math.max(0, Math.min(Math.min(...starts) - BEFORE_LOAD_NS, 0.9 * run.duration_ns)) : 0;
}

/** When the queue is first nearly as long as it gets: for readers who do not want anything to move. */
function filled(result: Result): number {
  const series = result.run.ports.get(result.port);
  if (!series) return 0;
  const most = fullest(result.run, result.port);
  return Math.max(0, series.t_ns.values.find((_, at) => most > 0 && series.packets.at(at) >= 0.8 * most) ?? 0);
}

function show(result: Result): void {
  const isNew = shown !== result;
  if (isNew) {
    const other = shown?.state.toml !== result.state.toml;
    shown = result;
    flows = new Flows(result);
    if (other) cards.clear();
    segmentShown = null;
    player.end = result.run.duration_ns;
    if (player.t > player.end) player.t = player.end;
    showExperiment();
    if (before && before.port !== result.port) runBefore(before.state, result.port);
  }
  player.limit = result.run.until_ns;
  isDue = true;
  seriesDue = true;
}

// ---- Before and after

function keep(on: boolean): void {
  if (!on || !shown) return drop();
  before = shown;
  foundBefore = found;
  flowsBefore = flows;
  showKept();
}

function drop(): void {
  before = foundBefore = flowsBefore = null;
  showKept();
}

function showKept(): void {
  element("stage-before").hidden = before === null;
  element("save-before").hidden = before === null;
  element("keep").setAttribute("aria-pressed", String(before !== null));
  element("keep").textContent = t(before ? "keep.end" : "keep");
  showNumbers();
  isDue = seriesDue = true;
  remember();
}

function runBefore(state: State, port: string): void {
  void earlier.start({ ...state, watch: port }, {
    done: (result) => {
      before = result;
      foundBefore = meaning(result);
      flowsBefore = new Flows(result);
      showKept();
    },
    refused: drop,
    failed: drop,
  });
}

// ---- What a reader does

function changed(sets: [string, string][], control: Control): void {
  const isNow = document.querySelector<HTMLInputElement>('input[name="scope"]:checked')?.value === "now";
  const at = isNow && control.changes && player.t > 0 ? Math.round(player.t / 1e6) * 1e6 : null;
  // What is looked at stays, even if another port becomes the slowest.
  if (at !== null && history.now.changes.length >= MOST_CHANGES && history.now.changes.every((each) => each.at_ns !== at)) {
    return notice(t("changes.most", { most: MOST_CHANGES }));
  }
  let state: State = { ...history.now, watch: shown?.port ?? history.now.watch };
  for (const [path, value] of sets) state = withSet(state, path, value, at);
  if (isNow && !control.changes) notice(t("scope.fixed", { control: control.label }));
  go(state, `${control.id}@${at}`);
}

function seek(at: number): void {
  player.playing = false;
  player.seek(at);
  isDue = true;
  speakSoon();
}

function step(forward: boolean): void {
  const track = shown?.run.packets.get(shown.port);
  const next = track?.neighbour(player.t, forward);
  // A little beyond the event, so that it has happened.
  seek(next !== null && next !== undefined ? next + (forward ? 1 : -1) : player.t + (forward ? 1 : -1) * 1e6);
}

/** Shows the page for an audience, in full screen where the browser allows it. */
function present(on: boolean): void {
  const root = document.documentElement;
  if (on) root.dataset["present"] = "";
  else delete root.dataset["present"];
  const button = element("present");
  button.setAttribute("aria-pressed", String(on));
  button.textContent = t(on ? "present.end" : "present");
  if (on && !document.fullscreenElement) void root.requestFullscreen?.().catch(() => undefined);
  if (!on && document.fullscreenElement) void document.exitFullscreen();
}

let speaking = 0;
function speakSoon(): void {
  clearTimeout(speaking);
  speaking = window.setTimeout(() => shown && speak(sentence(shown, player.t)), 600);
}

function speak(words: string): void {
  if (words === lastSpoken) return;
  lastSpoken = words;
  element("spoken").textContent = words;
}

let noticing = 0;
function notice(words: string): void {
  element("notice").textContent = words;
  clearTimeout(noticing);
  noticing = window.setTimeout(() => (element("notice").textContent = ""), 8000);
}

let remembering = 0;
/** Keeps the state in the address, so that a reload and a copied address have it. */
function remember(): void {
  clearTimeout(remembering);
  remembering = window.setTimeout(() => {
    void fragmentOf({ state: history.now, before: before?.state ?? null, at_ns: null }).then((fragment) => {
      const isFirst = history.now.preset === FIRST && !history.now.sets.length && !history.now.changes.length && !before;
      setAddress(isFirst ? location.pathname + location.search : `#${fragment}`);
    });
  }, 300);
}

/** Browsers limit the length of an address, and how often it may change. The page then works on without it. */
function setAddress(address: string): boolean {
  try {
    window.history.replaceState(null, "", address);
    return true;
  } catch {
    return false;
  }
}

async function openLink(): Promise<boolean> {
  try {
    const linked = await openFragment(location.hash);
    if (!linked) return false;
    history.push(linked.state);
    opening = linked.at_ns === null ? "moment" : null;
    player.t = linked.at_ns ?? 0;
    player.playing = false;
    refresh();
    if (linked.before) runBefore(linked.before, linked.before.watch ?? "");
    else drop();
    return true;
  } catch (error) {
    const reason = error instanceof LinkError ? error.message : String(error);
    notice(t(shown ? "link.kept" : "link.bad", { reason }));
    return false;
  }
}

async function copy(words: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(words);
    notice(done);
  } catch {
    notice(t("copy.failed"));
  }
}

// ---- What the page shows

function buttons(): void {
  element<HTMLButtonElement>("undo").disabled = !history.canUndo;
  element<HTMLButtonElement>("redo").disabled = !history.canRedo;
  const { now } = history;
  const original = now.preset === null ? null : presetText(now.preset);
  element<HTMLButtonElement>("reset").disabled = original === now.toml && !now.sets.length && !now.changes.length && !now.point;
  const preset = element<HTMLSelectElement>("preset");
  preset.value = now.preset ?? "";
}

function showProblem(): void {
  const box = element("refused");
  box.hidden = problem === null;
  box.replaceChildren();
  if (problem) {
    const title = document.createElement("strong");
    title.textContent = t(hasFailed ? "failed.title" : shown ? "refused" : "refused.first");
    const text = document.createElement("pre");
    text.textContent = problem.message + (problem.hint && !problem.message.includes(problem.hint) ? `\n${problem.hint}` : "");
    box.append(title, text);
  }
  editor.showProblem(problem);
}

function showExperiment(): void {
  if (!shown) return;
  const { opened } = shown.run;
  const words = lineWords(shown.state.preset);
  element("experiment-title").textContent = words?.title ?? opened.title;
  element("description").textContent = words?.about ?? opened.description ?? "";
  showProblem();
  const label = element("point-label");
  label.hidden = opened.points.length < 2;
  const select = element<HTMLSelectElement>("point");
  select.replaceChildren(...opened.points.map((point, at) => new Option(point.label, String(at))));
  select.value = String(opened.point);
  editor.show(experimentOf(shown), opened.notes);
  const legend = element("legend");
  legend.replaceChildren(
    ...flows!.legend().map((flow) => {
      const item = document.createElement("li");
      const swatch = document.createElement("span");
      swatch.className = flow.isProbe ? "swatch probe" : "swatch";
      swatch.style.background = flow.isProbe ? palette.ink : palette.flows[flow.colour]!;
      item.append(swatch, flow.isProbe || !flows!.areSingle ? flow.traffic : flow.name);
      return item;
    }),
    ...(["dropped", "marked"] as const).map((kind) => {
      const item = document.createElement("li");
      const swatch = document.createElement("span");
      swatch.className = `swatch ${kind}`;
      item.append(swatch, t(`legend.${kind}`));
      return item;
    }),
  );
}

/** Shows the network at the picture's time: the drawing and the controls. */
function showSegment(): void {
  if (!shown) return;
  const segment = segmentAt(shown, player.t);
  if (segment === segmentShown) return;
  segmentShown = segment;
  const { network } = segment;
  const { port, state, run } = shown;
  drawNetwork(element("network"), network, port, (chosen) => go({ ...history.now, watch: chosen }));
  const file = documentAt(state, run.opened, player.t);
  const { base } = shown;
  if (!file || !base) return;
  const found = network.ports.get(port)!;
  const [device] = network.endsOf(port);
  const load = network.loads(port)[0];
  const way = load ? network.path(load.from, load.to) : [];
  const previous = way[way.indexOf(found) - 1];
  cards.show(
    controlsOf(network.opened, network, file, base, port),
    partTitles({ sender: load?.from ?? device, device, before: previous ? network.endsOf(previous.name)[0] : device, line: found.link }),
  );
  tour.mark();
  const list = element("changes");
  const { lost } = scheduled(history.now, base.with(history.now.sets), run.duration_ns);
  list.replaceChildren(
    ...history.now.changes.map((change) => {
      const item = document.createElement("li");
      // An experiment's file cannot express it.
      const inLink = document.createElement("small");
      if (lost.some((each) => each.at_ns === change.at_ns)) inLink.textContent = t("changes.link");
      const text = document.createElement("code");
      text.textContent = change.sets.join(" ");
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "✕";
      remove.setAttribute("aria-label", t("changes.remove", { time: timeWords(change.at_ns) }));
      remove.addEventListener("click", () => go({ ...history.now, changes: history.now.changes.filter((each) => each !== change) }));
      item.append(t("changes.at", { time: brief(change.at_ns / 1e9, 4) }), " ", text, " ", inLink, remove);
      return item;
    }),
  );
  shownPort = port;
}

function showNumbers(): void {
  if (!found || !shown) return;
  showMeaning(element("numbers"), element("effects"), found, foundBefore, verdict(found));
}

function scene(result: Result, room: number, own: Flows, when: string, time: number): Scene {
  const { network } = segmentAt(result, time);
  const port = network.ports.get(result.port) ?? result.segments[0]!.network.ports.get(result.port)!;
  const [sender, receiver] = network.endsOf(result.port);
  const rate = result.run.rateAt(result.port, time);
  const texts = {
    queue: when + (port.queue_of === null ? t("stage.queue", { node: sender, discipline: port.radio ? t("stage.radio") : disciplineName(port.qdisc ?? "") }) : t("stage.elsewhere", { port: port.queue_of })),
    ring: t(port.radio ? "stage.driver" : "stage.ring"),
    wire: rate === null ? "" : rateWords(rate),
    sender,
    receiver,
    truncated: t("stage.truncated"),
  };
  return { run: result.run, port, flows: own, room, texts };
}

/** How long before the picture's time another log of packets begins, so that those in the queue are in it. */
const LEAD_NS = 2e9;
let fetching: { result: Result; from_ns: number } | null = null;

/** Gets the packets of the picture's time, if the log that there is does not reach it. */
function fetchPackets(result: Result): void {
  const track = result.run.packets.get(result.port);
  if (!track || track.covers(player.t) || result.run.summary === null) return;
  const from_ns = Math.max(0, player.t - LEAD_NS);
  if (fetching?.result === result && Math.abs(fetching.from_ns - from_ns) < LEAD_NS / 2) return;
  fetching = { result, from_ns };
  const take = (other: Result): void => {
    const found = other.run.packets.get(result.port);
    if (found) result.run.packets.set(result.port, found);
    isDue = true;
  };
  const end = (): void => void (fetching = null);
  const isThere = (other: Result): boolean => other.run.until_ns > player.t + LEAD_NS || other.run.summary !== null;
  void later.start({ ...result.state, watch: result.port }, {
    progress: (other) => isThere(other) && take(other),
    done: (other) => {
      take(other);
      end();
    },
    refused: end,
    failed: end,
  }, from_ns);
}

async function saveAnimation(): Promise<void> {
  if (!shown) return;
  const button = element<HTMLButtonElement>("save-gif");
  const name = fileName(shown.state, "gif");
  button.disabled = true;
  const at = scenes();
  // In the page, too, the earlier one is above.
  const film = { scenes: (time: number) => at(time).reverse(), title: shown.run.opened.title, from_ns: player.t, end_ns: player.end, speed: player.speed, colours: palette };
  try {
    const content = await gifOf(film, (part) => notice(t("export.gif.making", { percent: 20 * Math.floor(5 * part) })));
    notice("");
    save(name, "image/gif", content);
  } catch (error) {
    notice(t("export.gif.failed", { message: String(error) }));
  }
  button.disabled = false;
}

/** What the stages show at a time: the run, and below it, the one that it is compared with. */
function scenes(): (time: number) => Scene[] {
  const all: [Result, Flows, string][] = [];
  if (shown && flows) all.push([shown, flows, before ? `${t("now")}: ` : ""]);
  if (before && flowsBefore) all.push([before, flowsBefore, `${t("before")}: `]);
  const room = Math.max(24, ...all.map(([result]) => fullest(result.run, result.port)));
  return (time) => all.map(([result, own, when]) => scene(result, room, own, when, Math.min(time, result.run.duration_ns)));
}

function draw(): void {
  if (!shown || !flows) return;
  showSegment();
  fetchPackets(shown);
  if (before && shown.run.packets.get(shown.port)?.covers(player.t)) fetchPackets(before);
  const [above, below] = scenes()(player.t);
  stage.draw(above!, player.t, player.speed, palette);
  if (before && below) stageBefore.draw(below, Math.min(player.t, before.run.duration_ns), player.speed, palette);
  graphs.show(player.t, palette);
  const time = element<HTMLInputElement>("time");
  if (document.activeElement !== time || player.playing) time.value = String(Math.round((1000 * player.t) / player.end));
  const clock = `${fixed(player.t / 1e9, player.speed < 0.1 ? 4 : 2)} s / ${brief(player.end / 1e9)} s`;
  element("clock").textContent = clock;
  time.setAttribute("aria-valuetext", clock);
  const play = element("play");
  const label = t(player.playing ? "pause" : "play");
  if (play.textContent !== label) play.textContent = label;
}

function showWords(): void {
  if (!shown) return;
  element("sentence").textContent = sentence(shown, player.t);
  for (const [each, port] of [[stage, shown.port], [stageBefore, before?.port]] as const) {
    const { queue, ring, wire } = each.counts;
    if (port !== undefined) each.canvas.setAttribute("aria-label", t("stage.words", { port, queue, ring, wire }));
  }
}

function drawSeries(): void {
  if (!shown || !flows) return;
  const panels = panelsOf(shown, flows, (key) => t(key as "series.queue"));
  if (before && flowsBefore) {
    const others = panelsOf(before, flowsBefore, (key) => t(key as "series.queue"));
    panels.forEach((panel, at) => {
      panel.lines.push(...others[at]!.lines.map((line) => ({ ...line, before: true })));
      panel.most = Math.max(panel.most, others[at]!.most);
    });
  }
  graphs.draw({ panels, duration_ns: shown.run.duration_ns, warmup_ns: shown.run.opened.warmup_ns, changes: shown.state.changes.map((each) => each.at_ns) }, palette);
  isDue = true;
}

const SERIES_MS = 120;
const WORDS_MS = 250;

function frame(now: number): void {
  requestAnimationFrame(frame);
  if (player.tick(now)) isDue = true;
  if (seriesDue && now - lastSeries > SERIES_MS) {
    seriesDue = false;
    lastSeries = now;
    drawSeries();
  }
  if (isDue) {
    isDue = false;
    draw();
    if (shown && (now - lastWords > WORDS_MS || !player.playing)) {
      lastWords = now;
      showWords();
      tour.check();
    }
  }
}

// ---- The beginning

function fill(): void {
  translate();
  document.title = t("page.title");
  const preset = element<HTMLSelectElement>("preset");
  const groups = new Map<string, HTMLOptGroupElement>();
  const own = new Option(t("experiment.own"), "");
  own.hidden = true;
  preset.replaceChildren(own);
  for (const each of PRESETS) {
    const name = each.document ?? t("experiment.lines");
    let group = groups.get(name);
    if (!group) {
      group = document.createElement("optgroup");
      group.label = name;
      groups.set(name, group);
      preset.append(group);
    }
    const title = each.document === null ? t(`preset.${each.name.slice(5)}` as "preset.home") : each.title;
    group.append(new Option(title, each.name));
  }
  const tours = element<HTMLSelectElement>("tour-choice");
  tours.replaceChildren(new Option(t("tour.none"), ""), ...TOURS.map((each) => new Option(t(`tour.${each.id}` as "tour.bloat"), each.id)));
  tours.value = tour.current ?? "";
  const speed = element<HTMLSelectElement>("speed");
  speed.replaceChildren(...SPEEDS.map((each) => new Option(t("speed.times", { speed: brief(each) }), String(each))));
  speed.value = String(player.speed);
  const languages = element<HTMLSelectElement>("language");
  languages.replaceChildren(...LANGUAGES.map(([name, label]) => {
    const option = new Option(label, name);
    option.lang = name;
    return option;
  }));
  languages.value = current();
  showKept();
  element("present").textContent = t("present" in document.documentElement.dataset ? "present.end" : "present");
  showExperiment();
  segmentShown = null;
  cards.clear();
  if (shown) showSegment();
  tour.show();
  buttons();
}

function listen(): void {
  const on = (id: string, event: string, act: (target: HTMLInputElement) => void): void =>
    element(id).addEventListener(event, (happened) => act(happened.currentTarget as HTMLInputElement));
  on("preset", "change", ({ value }) => {
    drop();
    go(fresh(value, presetText(value)!, { watch: presetWatch(value) }), "", "moment");
  });
  on("point", "change", ({ value }) => go({ ...history.now, point: Number(value) }));
  on("tour-choice", "change", ({ value }) => tour.start(value));
  on("start-here", "click", () => {
    element<HTMLSelectElement>("tour-choice").value = TOURS[0]!.id;
    tour.start(TOURS[0]!.id);
  });
  on("undo", "click", () => history.undo() && refresh());
  on("redo", "click", () => history.redo() && refresh());
  on("reset", "click", () => {
    const preset = history.now.preset ?? FIRST;
    go(fresh(preset, presetText(preset)!, { watch: presetWatch(preset) }));
  });
  on("keep", "click", () => keep(before === null));
  on("share", "click", () => {
    clearTimeout(remembering);
    void fragmentOf({ state: history.now, before: before?.state ?? null, at_ns: player.t }).then((fragment) => {
      if (fragment.length >= MOST_FRAGMENT) return notice(t("share.long"));
      setAddress(`#${fragment}`);
      return copy(`${location.href.split("#")[0]}#${fragment}`, t("share.done"));
    });
  });
  on("present", "click", () => present(!("present" in document.documentElement.dataset)));
  document.addEventListener("fullscreenchange", () => !document.fullscreenElement && present(false));
  on("listen", "click", () => {
    const trips = shown ? turns(shown, player.t) : [];
    if (!trips.length) return notice(t("effect.unknown"));
    element("listen").setAttribute("aria-pressed", "true");
    const end = (): void => element("listen").setAttribute("aria-pressed", "false");
    play(trips).then(end, () => {
      end();
      notice(t("listen.failed"));
    });
  });
  on("play", "click", () => {
    player.toggle();
    isDue = true;
    if (!player.playing) speakSoon();
  });
  on("step", "click", () => step(true));
  on("back", "click", () => step(false));
  on("time", "input", ({ value }) => seek((Number(value) / 1000) * player.end));
  on("speed", "change", ({ value }) => {
    player.speed = Number(value);
    isDue = true;
  });
  on("language", "change", ({ value }) => {
    choose(value);
    fill();
    seriesDue = true;
    showWords();
  });
  const saveFile = (result: Result | null, end: string): void => {
    if (!result) return;
    const { toml, lost } = exportOf(result);
    save(fileName(result.state, end), "application/toml", toml);
    notice(lost.length ? t("export.lost", { what: lost.join("; ") }) : "");
  };
  on("save-toml", "click", () => saveFile(shown, "toml"));
  on("save-before", "click", () => saveFile(before, "before.toml"));
  on("save-csv", "click", () => shown && flows && save(fileName(shown.state, "csv"), "text/csv", csvOf(panelsOf(shown, flows, (key) => t(key as "series.queue")))));
  on("save-gif", "click", () => void saveAnimation());
  on("save-svg", "click", () => shown && save(fileName(shown.state, "svg"), "image/svg+xml", svgOf(graphs.charts, shown.run.opened.title, palette.ink, palette.paper)));
  for (const [id, engine] of [["copy-sim", "sim"], ["copy-kernel", "guest"]] as const) {
    on(id, "click", () => {
      if (!shown) return;
      const compared = before ? `${commandOf(before, engine, FILE_BEFORE)}\n` : "";
      const command = compared + commandOf(shown, engine);
      const box = element("command");
      box.hidden = false;
      box.textContent = command;
      const lost = [before, shown].flatMap((each) => (each ? exportOf(each).lost : []));
      const done = needsFile(command) ? t(before ? "command.files" : "command.file") : t("command.done");
      void copy(command, lost.length ? `${done} ${t("export.lost", { what: [...new Set(lost)].join("; ") })}` : done);
    });
  }
  document.addEventListener("keydown", keys);
  document.addEventListener("click", (event) => {
    const menu = element<HTMLDetailsElement>("menu");
    if (menu.open && event.target instanceof Node && !menu.contains(event.target)) menu.open = false;
  });
  window.addEventListener("hashchange", () => void openLink());
  onScheme(() => {
    palette = colours();
    showExperiment();
    isDue = seriesDue = true;
  });
  new ResizeObserver(() => {
    segmentShown = null;
    isDue = true;
  }).observe(element("frame"));
}

/** Keys of the whole page, where no element takes them. */
function keys(event: KeyboardEvent): void {
  if (event.key === "Escape") element<HTMLDetailsElement>("menu").open = false;
  if (tour.current !== null && "present" in document.documentElement.dataset && (event.key === "PageDown" || event.key === "PageUp")) {
    event.preventDefault();
    tour.turn(event.key === "PageDown");
    return;
  }
  const target = event.target;
  if (target instanceof Element && target.closest("input, select, textarea, button, summary, a, [role=button]")) return;
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key.toLowerCase() === "z") {
    event.preventDefault();
    if (event.shiftKey ? history.redo() : history.undo()) refresh();
  } else if (!isCommand && event.key === " ") {
    event.preventDefault();
    element("play").click();
  } else if (!isCommand && event.key === "ArrowRight") step(true);
  else if (!isCommand && event.key === "ArrowLeft") step(false);
}

/** For tests: what the picture holds, without reading its pixels. */
declare global {
  interface Window {
    explorer: { counts: () => Stage["counts"]; state: () => State; meaning: () => Meaning | null; time: () => number; port: () => string; seek: (t_ns: number) => void };
  }
}
window.explorer = {
  counts: () => stage.counts,
  state: () => history.now,
  meaning: () => found,
  time: () => player.t,
  port: () => shownPort,
  seek,
};

fill();
listen();
element("no-picture").hidden = stage.draws;
void openLink().then((opened) => {
  if (!opened) refresh();
});
requestAnimationFrame(frame);
