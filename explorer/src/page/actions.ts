// What a reader does: moves a control, steps through the picture, undoes, shares, and takes something along.

import { FIRST, presetText, presetWatch } from "../presets/index";
import { TOURS } from "../tours/index";
import { gifOf } from "./animation";
import { onScheme } from "./colours";
import type { Control } from "./controls";
import { caveatOf, commandOf, csvOf, exportOf, FILE_BEFORE, fileName, needsFile, save, svgOf } from "./exports";
import type { Lab, Reading } from "./lab";
import { fragmentOf, LinkError, MOST_FRAGMENT, openFragment } from "./link";
import { play, turns } from "./sound";
import { fresh, MOST_CHANGES, withSet, type Change, type State } from "./state";
import { choose, t } from "./texts";
import { element, isFirst, panels, View, type Acts } from "./view";

const REMEMBER_MS = 300;

export class Actions implements Acts {
  readonly view: View;
  private remembering = 0;

  constructor(private readonly lab: Lab) {
    this.view = new View(lab, this);
    this.view.remember = () => this.remember();
  }

  // ---- The picture

  change(sets: [string, string][], control: Control): void {
    const { lab, view } = this;
    const { history, player } = lab;
    const isNow = document.querySelector<HTMLInputElement>('input[name="scope"]:checked')?.value === "now";
    const at = isNow && control.changes && player.t > 0 ? Math.round(player.t / 1e6) * 1e6 : null;
    if (at !== null && history.now.changes.length >= MOST_CHANGES && history.now.changes.every((each) => each.at_ns !== at)) {
      view.notice(t("changes.most", { most: MOST_CHANGES }));
      return;
    }
    // What is looked at stays, even if another port becomes the slowest.
    let state: State = { ...history.now, watch: lab.shown?.result.port ?? history.now.watch };
    for (const [path, value] of sets) state = withSet(state, path, value, at);
    if (isNow && !control.changes) view.notice(t("scope.fixed", { control: control.label }));
    lab.go(state, `${control.id}@${at}`);
  }

  watch(port: string): void {
    this.lab.go({ ...this.lab.history.now, watch: port });
  }

  write(toml: string): void {
    // The text has what was set for the whole run, and no change during it.
    const { seed, member, files, changes, watch } = this.lab.history.now;
    this.lab.go(fresh(null, toml, { seed, member, files, changes, watch }), "editor");
  }

  remove(change: Change): void {
    const { now } = this.lab.history;
    this.lab.go({ ...now, changes: now.changes.filter((each) => each !== change) });
  }

  guide(state: State): void {
    this.lab.drop();
    this.lab.go(state, "", "start");
  }

  seek(at: number): void {
    const { player } = this.lab;
    player.playing = false;
    player.seek(at);
    this.view.invalidate();
    this.view.speakSoon();
  }

  private step(forward: boolean): void {
    const { shown, player } = this.lab;
    const sign = forward ? 1 : -1;
    const next = shown?.result.run.packets.get(shown.result.port)?.neighbour(player.t, forward) ?? null;
    // A little beyond the event, so that it has happened.
    this.seek(next === null ? player.t + sign * 1e6 : next + sign);
  }

  private undo(back: boolean): void {
    const { history } = this.lab;
    if (back ? history.undo() : history.redo()) this.lab.refresh();
  }

  private choose(preset: string): void {
    this.lab.drop();
    this.lab.go(fresh(preset, presetText(preset)!, { watch: presetWatch(preset) }), "", "moment");
  }

  private reset(): void {
    const preset = this.lab.history.now.preset ?? FIRST;
    this.lab.go(fresh(preset, presetText(preset)!, { watch: presetWatch(preset) }));
  }

  /** Shows the page for an audience, in full screen where the browser allows it. */
  private present(on: boolean): void {
    const root = document.documentElement;
    if (on) root.dataset["present"] = "";
    else delete root.dataset["present"];
    const button = element("present");
    button.setAttribute("aria-pressed", String(on));
    button.textContent = t(on ? "present.end" : "present");
    if (on && !document.fullscreenElement) void root.requestFullscreen?.().catch(() => undefined);
    if (!on && document.fullscreenElement) void document.exitFullscreen();
  }

  private listenTo(reading: Reading | null): void {
    const trips = reading ? turns(reading.result, this.lab.player.t) : [];
    if (!trips.length) return this.view.notice(t("effect.unknown"));
    const button = element("listen");
    button.setAttribute("aria-pressed", "true");
    const end = (): void => button.setAttribute("aria-pressed", "false");
    play(trips).then(end, () => {
      end();
      this.view.notice(t("listen.failed"));
    });
  }

  // ---- Links

  /** Opens what the page's address says. Returns whether it says something that can be opened. */
  async openLink(): Promise<boolean> {
    const { lab } = this;
    try {
      const linked = await openFragment(location.hash);
      if (!linked) return false;
      lab.open(linked.state, linked.at_ns);
      if (linked.before) lab.compare(linked.before, linked.before.watch ?? "");
      else lab.drop();
      return true;
    } catch (error) {
      const reason = error instanceof LinkError ? error.message : String(error);
      this.view.notice(t(lab.shown ? "link.kept" : "link.bad", { reason }));
      return false;
    }
  }

  /** Opens the link of a changed address. The page is busy from the change on, until the run of the link is over. */
  private async follow(): Promise<void> {
    const { dataset } = document.documentElement;
    const wasBusy = "busy" in dataset;
    dataset["busy"] = "";
    if (!(await this.openLink()) && !wasBusy) delete dataset["busy"];
  }

  private fragment(at_ns: number | null): Promise<string> {
    const { history, before } = this.lab;
    return fragmentOf({ state: history.now, before: before?.result.state ?? null, at_ns });
  }

  /** Keeps the state in the address, so that a reload and a copied address have it. */
  private remember(): void {
    clearTimeout(this.remembering);
    this.remembering = window.setTimeout(() => {
      void this.fragment(null).then((fragment) => {
        const { history, before } = this.lab;
        setAddress(isFirst(history.now) && !before ? location.pathname + location.search : `#${fragment}`);
      });
    }, REMEMBER_MS);
  }

  private async share(): Promise<void> {
    clearTimeout(this.remembering);
    const fragment = await this.fragment(this.lab.player.t);
    if (fragment.length >= MOST_FRAGMENT) return this.view.notice(t("share.long"));
    setAddress(`#${fragment}`);
    return this.copy(`${location.href.split("#")[0]}#${fragment}`, t("share.done"));
  }

  private async copy(words: string, done: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(words);
      this.view.notice(done);
    } catch {
      this.view.notice(t("copy.failed"));
    }
  }

  // ---- What a reader takes along

  private saveFile(reading: Reading | null, end: string): void {
    if (!reading) return;
    save(fileName(reading.result.state, end), "application/toml", exportOf(reading.result).toml);
    this.view.notice(caveatOf([reading.result]));
  }

  private saveSeries(end: "csv" | "svg"): void {
    const { view, lab } = this;
    if (!lab.shown) return;
    const { state, run } = lab.shown.result;
    if (end === "csv") save(fileName(state, end), "text/csv", csvOf(panels(lab.shown)));
    else save(fileName(state, end), "image/svg+xml", svgOf(view.graphs.charts, run.opened.title, view.palette.ink, view.palette.paper));
  }

  private async saveAnimation(): Promise<void> {
    const { view, lab } = this;
    const { shown, player } = lab;
    if (!shown) return;
    const button = element<HTMLButtonElement>("save-gif");
    const name = fileName(shown.result.state, "gif");
    button.disabled = true;
    // In the page, too, the earlier one is above.
    const scenes = (time: number): ReturnType<View["scenesAt"]>[number][] => [...view.scenesAt(time)].reverse();
    const film = { scenes, title: shown.result.run.opened.title, from_ns: player.t, end_ns: player.end, speed: player.speed, colours: view.palette };
    try {
      const content = await gifOf(film, (part) => view.notice(t("export.gif.making", { percent: 20 * Math.floor(5 * part) })));
      view.notice("");
      save(name, "image/gif", content);
    } catch (error) {
      view.notice(t("export.gif.failed", { message: String(error) }));
    }
    button.disabled = false;
  }

  private copyCommand(engine: "sim" | "guest"): void {
    const { shown, before } = this.lab;
    if (!shown) return;
    const earlier = before ? `${commandOf(before.result, engine, FILE_BEFORE)}\n` : "";
    const command = earlier + commandOf(shown.result, engine);
    const box = element("command");
    box.hidden = false;
    box.textContent = command;
    const done = needsFile(command) ? t(before ? "command.files" : "command.file") : t("command.done");
    void this.copy(command, `${done} ${caveatOf([before, shown].flatMap((each) => each?.result ?? []))}`.trim());
  }

  // ---- The elements of the page

  /** Lets the page's elements do what they are for. */
  listen(): void {
    const { lab, view } = this;
    const on = (id: string, event: string, act: (target: HTMLInputElement) => void): void =>
      element(id).addEventListener(event, (happened) => act(happened.currentTarget as HTMLInputElement));
    on("preset", "change", ({ value }) => this.choose(value));
    on("point", "change", ({ value }) => lab.go({ ...lab.history.now, point: Number(value) }));
    on("tour-choice", "change", ({ value }) => view.tour.start(value));
    on("start-here", "click", () => {
      element<HTMLSelectElement>("tour-choice").value = TOURS[0]!.id;
      view.tour.start(TOURS[0]!.id);
    });
    on("undo", "click", () => this.undo(true));
    on("redo", "click", () => this.undo(false));
    on("reset", "click", () => this.reset());
    on("keep", "click", () => (lab.before ? lab.drop() : lab.keep()));
    on("share", "click", () => void this.share());
    on("present", "click", () => this.present(!("present" in document.documentElement.dataset)));
    document.addEventListener("fullscreenchange", () => !document.fullscreenElement && this.present(false));
    on("listen", "click", () => this.listenTo(lab.shown));
    on("play", "click", () => {
      lab.player.toggle();
      view.invalidate();
      if (!lab.player.playing) view.speakSoon();
    });
    on("step", "click", () => this.step(true));
    on("back", "click", () => this.step(false));
    on("time", "input", ({ value }) => this.seek((Number(value) / 1000) * lab.player.end));
    on("speed", "change", ({ value }) => {
      lab.player.speed = Number(value);
      view.invalidate();
    });
    on("language", "change", ({ value }) => {
      choose(value);
      view.fill();
    });
    on("save-toml", "click", () => this.saveFile(lab.shown, "toml"));
    on("save-before", "click", () => this.saveFile(lab.before, "before.toml"));
    on("save-csv", "click", () => this.saveSeries("csv"));
    on("save-svg", "click", () => this.saveSeries("svg"));
    on("save-gif", "click", () => void this.saveAnimation());
    on("copy-sim", "click", () => this.copyCommand("sim"));
    on("copy-kernel", "click", () => this.copyCommand("guest"));
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("click", (event) => {
      const menu = element<HTMLDetailsElement>("menu");
      if (menu.open && event.target instanceof Node && !menu.contains(event.target)) menu.open = false;
    });
    window.addEventListener("hashchange", () => void this.follow());
    onScheme(() => view.recolour());
  }

  /** Keys of the whole page, where no element takes them. */
  private key(event: KeyboardEvent): void {
    const { tour } = this.view;
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
      this.undo(!event.shiftKey);
    } else if (!isCommand && event.key === " ") {
      event.preventDefault();
      element("play").click();
    } else if (!isCommand && event.key === "ArrowRight") this.step(true);
    else if (!isCommand && event.key === "ArrowLeft") this.step(false);
  }
}

/** Browsers limit the length of an address, and how often it may change. The page then works on without it. */
function setAddress(address: string): void {
  try {
    window.history.replaceState(null, "", address);
  } catch {
    // As above.
  }
}
