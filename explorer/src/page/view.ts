// What the page shows of the lab: the picture, the controls, numbers, charts, words and messages.

import { FIRST, lineWords, PRESETS, presetText } from "../presets/index";
import { TOURS } from "../tours/index";
import { Cards, partTitles } from "./cards";
import { colours } from "./colours";
import { Completer } from "./completion";
import { controlsOf, type Control } from "./controls";
import { drawNetwork } from "./drawing";
import { Editor } from "./editor";
import { showMeaning } from "./effects";
import { experimentOf } from "./exports";
import { Graphs } from "./graphs";
import type { Lab, Reading, Watcher } from "./lab";
import { SPEEDS } from "./player";
import { scheduled } from "./schedule";
import { panelsOf, type Panel } from "./series";
import { documentAt, segmentAt, type Segment } from "./session";
import { Scenes } from "./scenes";
import { Stage, type Scene } from "./stage";
import type { Change, State } from "./state";
import { current, LANGUAGES, t, translate } from "./texts";
import { Tour } from "./tour";
import { brief, fixed, timeWords } from "./units";
import { sentence, verdict } from "./words";

/** Milliseconds between two drawings of the charts, and of the words, while something moves. */
const SERIES_MS = 120;
const WORDS_MS = 250;
const NOTICE_MS = 8000;
const SPEAK_MS = 600;

export const element = <Kind extends HTMLElement = HTMLElement>(id: string): Kind => document.getElementById(id) as Kind;

/** What a reader does with what the view shows. */
export interface Acts {
  change(sets: [string, string][], control: Control): void;
  seek(t_ns: number): void;
  watch(port: string): void;
  write(toml: string): void;
  remove(change: Change): void;
  /** A tour shows a state of its own. */
  guide(state: State): void;
}

/** The data of a run's charts. */
export const panels = ({ result, flows }: Reading): Panel[] => panelsOf(result, flows, (key) => t(key as "series.queue"));

export class View implements Watcher {
  palette = colours();
  /** Called when the address of the page should be that of the present state. */
  remember: () => void = () => undefined;
  readonly stage = new Stage(element("stage-now").querySelector("canvas")!);
  readonly tour: Tour;
  readonly graphs: Graphs;
  /** The port of the network that is shown. */
  port = "";
  private readonly stageBefore = new Stage(element("stage-before").querySelector("canvas")!);
  private readonly cards: Cards;
  private readonly editor: Editor;
  private readonly scenes = new Scenes();
  private isDue = true;
  private seriesDue = false;
  private lastSeries = 0;
  private lastWords = 0;
  private segment: Segment | null = null;

  constructor(
    private readonly lab: Lab,
    private readonly acts: Acts,
  ) {
    this.cards = new Cards(element("cards"), (sets, control) => acts.change(sets, control));
    this.graphs = new Graphs(element("charts"), (at) => acts.seek(at));
    this.editor = new Editor((toml) => acts.write(toml), async () => new Completer(await lab.schema()));
    this.tour = new Tour(element("tour"), {
      go: (state) => acts.guide(state),
      keep: () => lab.keep(),
      read: () => this.reading(),
      ended: () => (element<HTMLSelectElement>("tour-choice").value = ""),
    });
    element("no-picture").hidden = this.stage.draws;
    new ResizeObserver(() => this.resized()).observe(element("frame"));
  }

  // What a tour's step looks at.
  private reading(): ReturnType<ConstructorParameters<typeof Tour>[1]["read"]> {
    const { shown, before, history, player } = this.lab;
    if (!shown?.meaning || shown.result.state !== history.now) return null;
    const { result, meaning } = shown;
    return { result, meaning, before: before?.meaning ?? null, t: player.t, now: documentAt(result.state, result.run.opened, player.t) };
  }

  // ---- What happens in the lab

  began(): void {
    document.documentElement.dataset["busy"] = "";
    this.buttons();
    this.remember();
  }

  progressed(share: number): void {
    element<HTMLProgressElement>("progress").value = share;
  }

  replaced(previous: Reading | null): void {
    if (previous?.result.state.toml !== this.lab.shown!.result.state.toml) this.cards.clear();
    this.segment = null;
    this.showExperiment();
  }

  grew(): void {
    this.isDue = this.seriesDue = true;
  }

  ended({ result, meaning }: Reading): void {
    this.showNumbers();
    this.seriesDue = true;
    this.lastSeries = 0;
    this.tour.check();
    const { warnings, left_out } = result.run.summary!;
    this.editor.showNotes([...result.run.opened.notes, ...warnings, ...left_out]);
    delete document.documentElement.dataset["busy"];
    this.speak(`${sentence(result, this.lab.player.t)} ${verdict(meaning!)}`);
  }

  refused(): void {
    delete document.documentElement.dataset["busy"];
    this.showProblem();
  }

  compared(): void {
    const { before } = this.lab;
    element("stage-before").hidden = before === null;
    element("save-before").hidden = before === null;
    element("keep").setAttribute("aria-pressed", String(before !== null));
    element("keep").textContent = t(before ? "keep.end" : "keep");
    this.showNumbers();
    this.grew();
    this.remember();
  }

  // ---- The whole page

  /** Fills the page with words of the present language. */
  fill(): void {
    translate();
    document.title = t("page.title");
    this.fillPresets();
    const tours = element<HTMLSelectElement>("tour-choice");
    tours.replaceChildren(new Option(t("tour.none"), ""), ...TOURS.map((each) => new Option(t(`tour.${each.id}` as "tour.bloat"), each.id)));
    tours.value = this.tour.current ?? "";
    const speed = element<HTMLSelectElement>("speed");
    speed.replaceChildren(...SPEEDS.map((each) => new Option(t("speed.times", { speed: brief(each) }), String(each))));
    speed.value = String(this.lab.player.speed);
    const languages = element<HTMLSelectElement>("language");
    languages.replaceChildren(...LANGUAGES.map(([name, label]) => {
      const option = new Option(label, name);
      option.lang = name;
      return option;
    }));
    languages.value = current();
    this.compared();
    element("present").textContent = t("present" in document.documentElement.dataset ? "present.end" : "present");
    this.showExperiment();
    this.segment = null;
    this.cards.clear();
    this.showSegment();
    this.tour.show();
    this.buttons();
    this.showWords();
  }

  private fillPresets(): void {
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
  }

  /** The scheme of colours has changed. */
  recolour(): void {
    this.palette = colours();
    this.showExperiment();
    this.grew();
  }

  private resized(): void {
    this.segment = null;
    this.isDue = true;
  }

  private buttons(): void {
    const { history } = this.lab;
    element<HTMLButtonElement>("undo").disabled = !history.canUndo;
    element<HTMLButtonElement>("redo").disabled = !history.canRedo;
    const { now } = history;
    const original = now.preset === null ? null : presetText(now.preset);
    element<HTMLButtonElement>("reset").disabled = original === now.toml && !now.sets.length && !now.changes.length && !now.point;
    element<HTMLSelectElement>("preset").value = now.preset ?? "";
  }

  // ---- Messages and words

  private noticing = 0;

  /** Shows a message for some seconds. */
  notice(words: string): void {
    element("notice").textContent = words;
    clearTimeout(this.noticing);
    this.noticing = window.setTimeout(() => (element("notice").textContent = ""), NOTICE_MS);
  }

  private speaking = 0;
  private spoken = "";

  /** Says what the picture shows, once it has stood still for a moment. */
  speakSoon(): void {
    clearTimeout(this.speaking);
    this.speaking = window.setTimeout(() => {
      const { shown, player } = this.lab;
      if (shown) this.speak(sentence(shown.result, player.t));
    }, SPEAK_MS);
  }

  private speak(words: string): void {
    if (words === this.spoken) return;
    this.spoken = words;
    element("spoken").textContent = words;
  }

  private showWords(): void {
    const { shown, before, player } = this.lab;
    if (!shown) return;
    element("sentence").textContent = sentence(shown.result, player.t);
    for (const [each, port] of [[this.stage, shown.result.port], [this.stageBefore, before?.result.port]] as const) {
      const { queue, ring, wire } = each.counts;
      if (port !== undefined) each.canvas.setAttribute("aria-label", t("stage.words", { port, queue, ring, wire }));
    }
  }

  private showProblem(): void {
    const { problem, hasFailed, shown } = this.lab;
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
    this.editor.showProblem(problem);
  }

  // ---- The experiment

  private showExperiment(): void {
    const { shown } = this.lab;
    if (!shown) return;
    const { opened } = shown.result.run;
    const words = lineWords(shown.result.state.preset);
    element("experiment-title").textContent = words?.title ?? opened.title;
    element("description").textContent = words?.about ?? opened.description ?? "";
    this.showProblem();
    element("point-label").hidden = opened.points.length < 2;
    const select = element<HTMLSelectElement>("point");
    select.replaceChildren(...opened.points.map((point, at) => new Option(point.label, String(at))));
    select.value = String(opened.point);
    this.editor.show(experimentOf(shown.result), opened.notes);
    this.showLegend(shown);
  }

  private showLegend({ flows }: Reading): void {
    const { palette } = this;
    const item = (className: string, words: string, colour = ""): HTMLElement => {
      const made = document.createElement("li");
      const swatch = document.createElement("span");
      swatch.className = className;
      swatch.style.background = colour;
      made.append(swatch, words);
      return made;
    };
    element("legend").replaceChildren(
      ...flows.legend().map((flow) => {
        if (flow.isProbe) return item("swatch probe", flow.traffic, palette.ink);
        return item("swatch", flows.areSingle ? flow.name : flow.traffic, palette.flows[flow.colour]!);
      }),
      ...(["dropped", "marked"] as const).map((kind) => item(`swatch ${kind}`, t(`legend.${kind}`))),
    );
  }

  /** Shows the network at the picture's time: the drawing and the controls. */
  private showSegment(): void {
    const { shown, player } = this.lab;
    if (!shown) return;
    const segment = segmentAt(shown.result, player.t);
    if (segment === this.segment) return;
    this.segment = segment;
    const { network } = segment;
    const { port, state, run, base } = shown.result;
    drawNetwork(element("network"), network, port, (chosen) => this.acts.watch(chosen));
    const file = documentAt(state, run.opened, player.t);
    if (!file || !base) return;
    const found = network.ports.get(port)!;
    const [device] = network.endsOf(port);
    const load = network.loads(port)[0];
    const way = load ? network.path(load.from, load.to) : [];
    const previous = way[way.indexOf(found) - 1];
    this.cards.show(
      controlsOf(network.opened, network, file, base, port),
      partTitles({ sender: load?.from ?? device, device, before: previous ? network.endsOf(previous.name)[0] : device, line: found.link }),
    );
    this.tour.mark();
    const { now } = this.lab.history;
    this.showChanges(now.changes, scheduled(now, base.with(now.sets), run.duration_ns).lost);
    this.port = port;
  }

  // The changes during the run; those that an experiment's file cannot express are marked.
  private showChanges(changes: Change[], lost: Change[]): void {
    element("changes").replaceChildren(
      ...changes.map((change) => {
        const item = document.createElement("li");
        const text = document.createElement("code");
        text.textContent = change.sets.join(" ");
        const inLink = document.createElement("small");
        if (lost.some((each) => each.at_ns === change.at_ns)) inLink.textContent = t("changes.link");
        const remove = document.createElement("button");
        remove.type = "button";
        remove.textContent = "✕";
        remove.setAttribute("aria-label", t("changes.remove", { time: timeWords(change.at_ns) }));
        remove.addEventListener("click", () => this.acts.remove(change));
        item.append(t("changes.at", { time: brief(change.at_ns / 1e9, 4) }), " ", text, " ", inLink, remove);
        return item;
      }),
    );
  }

  private showNumbers(): void {
    const found = this.lab.measured?.meaning;
    if (found) showMeaning(element("numbers"), element("effects"), found, this.lab.before?.meaning ?? null, verdict(found));
  }

  // ---- What moves

  /** What the stages show at a time: the run, and the one that it is compared with. */
  scenesAt(time: number): readonly Scene[] {
    return this.scenes.at(this.lab.shown, this.lab.before, time);
  }

  /** The picture is drawn anew at the next frame. */
  invalidate(): void {
    this.isDue = true;
  }

  /** Draws what is due at `now` ms, and goes on doing so. */
  frame(now: number): void {
    requestAnimationFrame((next) => this.frame(next));
    const { lab } = this;
    if (lab.player.tick(now)) this.isDue = true;
    if (this.seriesDue && now - this.lastSeries > SERIES_MS) {
      this.seriesDue = false;
      this.lastSeries = now;
      this.drawSeries();
    }
    if (!this.isDue) return;
    this.isDue = false;
    this.draw();
    if (lab.shown && (now - this.lastWords > WORDS_MS || !lab.player.playing)) {
      this.lastWords = now;
      this.showWords();
      this.tour.check();
    }
  }

  private draw(): void {
    const { lab, palette } = this;
    const { shown, before, player } = lab;
    if (!shown) return;
    this.showSegment();
    lab.fetchPackets();
    const [above, below] = this.scenesAt(player.t);
    this.stage.draw(above!, player.t, player.speed, palette);
    if (before && below) this.stageBefore.draw(below, Math.min(player.t, before.result.run.duration_ns), player.speed, palette);
    this.graphs.show(player.t, palette);
    const time = element<HTMLInputElement>("time");
    if (document.activeElement !== time || player.playing) time.value = String(Math.round((1000 * player.t) / player.end));
    const clock = `${fixed(player.t / 1e9, player.speed < 0.1 ? 4 : 2)} s / ${brief(player.end / 1e9)} s`;
    element("clock").textContent = clock;
    time.setAttribute("aria-valuetext", clock);
    const play = element("play");
    const label = t(player.playing ? "pause" : "play");
    if (play.textContent !== label) play.textContent = label;
  }

  private drawSeries(): void {
    const { shown, before } = this.lab;
    if (!shown) return;
    const all = panels(shown);
    if (before) {
      const others = panels(before);
      all.forEach((panel, at) => {
        panel.lines.push(...others[at]!.lines.map((line) => ({ ...line, before: true })));
        panel.most = Math.max(panel.most, others[at]!.most);
      });
    }
    const { run, state } = shown.result;
    this.graphs.draw({ panels: all, duration_ns: run.duration_ns, warmup_ns: run.opened.warmup_ns, changes: state.changes.map((each) => each.at_ns) }, this.palette);
    this.isDue = true;
  }
}

/** Whether a state is the one with which the page begins. */
export const isFirst = (state: State): boolean => state.preset === FIRST && !state.sets.length && !state.changes.length;
