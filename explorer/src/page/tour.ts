// A guided tour: steps with a question each, which the reader answers by moving something.

import type { Document } from "./document";
import type { Meaning } from "./meaning";
import type { Result } from "./session";
import type { State } from "./state";
import { has, t, type Key } from "./texts";
import { verdict } from "./words";
import { tourNamed, type Step } from "../tours/index";

/** What a step looks at. */
export interface Reading {
  result: Result;
  meaning: Meaning;
  before: Meaning | null;
  /** The time of the picture, in ns. */
  t: number;
  /** The file as the run has it at that time. */
  now: Document | null;
}

export interface Host {
  go: (state: State) => void;
  keep: () => void;
  read: () => Reading | null;
  ended: () => void;
}

export class Tour {
  current: string | null = null;
  private at = 0;
  private solved = false;
  /** The reader is near: something is right, but the question is about something else. */
  private near = false;
  /** The result that a step began with does not answer it. */
  private first: State | null = null;

  constructor(
    private readonly into: HTMLElement,
    private readonly host: Host,
  ) {}

  start(id: string): void {
    this.current = tourNamed(id) ? id : null;
    if (this.current) this.enter(0);
    else this.show();
  }

  private get steps(): readonly Step[] {
    return (this.current && tourNamed(this.current)?.steps) || [];
  }

  private enter(at: number): void {
    this.at = at;
    const step = this.steps[at]!;
    this.solved = step.solved === undefined;
    this.near = false;
    const setup = step.setup?.();
    this.first = setup ?? null;
    this.waitToKeep = step.keep ?? false;
    if (setup) this.host.go(setup);
    else if (this.waitToKeep && this.read()) {
      this.waitToKeep = false;
      this.host.keep();
    }
    this.show(true);
  }

  private waitToKeep = false;
  private reading: HTMLElement | null = null;

  /** The present picture, once its run is over. */
  private read(): Reading | null {
    const reading = this.host.read();
    return reading && reading.result.run.summary !== null ? reading : null;
  }

  /** Looks whether the present picture answers the question. */
  check(): void {
    const step = this.steps[this.at];
    if (!this.current || !step) return;
    const reading = this.read();
    if (!reading) return;
    if (this.waitToKeep && (this.first === null || reading.result.state === this.first)) {
      this.waitToKeep = false;
      this.host.keep();
    }
    this.showReading(reading);
    if (this.solved) return;
    const solved = step.solved?.(reading) ?? false;
    const near = !solved && (step.near?.(reading) ?? false);
    if (!solved && near === this.near) return;
    this.solved = solved;
    this.near = near;
    this.show();
    if (solved) this.sayFound();
  }

  /** The run in words, and the one that it is compared with, so that both are beside the question. */
  private showReading({ meaning, before }: Reading): void {
    const now = verdict(meaning);
    const then = before ? verdict(before) : now;
    const lines = then === now ? [now] : [t("tour.now", { words: now }), t("tour.before", { words: then })];
    const words = lines.join("\n");
    if (this.reading && this.reading.textContent !== words) this.reading.textContent = words;
  }

  /** A reader who moved a control far from the question does not see that it is answered. */
  private sayFound(): void {
    const { top, bottom } = this.into.getBoundingClientRect();
    if (bottom > 60 && top < window.innerHeight - 60) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "primary found";
    button.textContent = t("tour.found");
    button.addEventListener("click", () => {
      this.into.scrollIntoView({ block: "start" });
      document.getElementById("tour-title")?.focus({ preventScroll: true });
    });
    this.into.append(button);
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((each) => each.isIntersecting) && button.isConnected) return;
      seen.disconnect();
      button.remove();
    });
    seen.observe(this.into);
  }

  /** Scrolls to what the question is about. */
  private point(): void {
    const asked = document.querySelector<HTMLElement>(".asked");
    asked?.scrollIntoView({ block: "center" });
    (asked?.matches("input, button") ? asked : asked?.querySelector<HTMLElement>("input, select, button"))?.focus({ preventScroll: true });
  }

  /** Shows on the page what the question is about; anew when the controls have changed. */
  mark(): void {
    const wanted = new Set((this.steps[this.at]?.controls ?? []).map((each) => document.querySelector(each.startsWith("#") ? each : `[data-control^="${each}"]`)));
    for (const each of document.querySelectorAll(".asked")) if (!wanted.has(each)) each.classList.remove("asked");
    for (const each of wanted) each?.classList.add("asked");
  }

  show(focus = false): void {
    const { into } = this;
    into.hidden = this.current === null;
    if (this.current === null) delete document.documentElement.dataset["tour"];
    else document.documentElement.dataset["tour"] = this.current;
    into.replaceChildren();
    this.mark();
    if (this.current === null) return;
    const step = this.steps[this.at]!;
    const key = `tour.${this.current}.${this.at + 1}`;
    const text = (end: string): string => t(`${key}.${end}` as Key);
    const add = (name: string, words: string, className = "", parent: HTMLElement = into): HTMLElement => {
      const made = document.createElement(name);
      made.textContent = words;
      if (className) made.className = className;
      parent.append(made);
      return made;
    };
    add("p", t("tour.step", { tour: t(`tour.${this.current}` as Key), step: this.at + 1, of: this.steps.length }), "kicker");
    const title = add("h2", text("title"));
    title.id = "tour-title";
    title.tabIndex = -1;
    add("p", text("text"), "prose");
    const state = document.createElement("div");
    state.setAttribute("role", "status");
    if (step.solved) {
      const question = add("p", text("question"), "question");
      question.dataset["solved"] = String(this.solved);
      into.append(state);
      if (this.solved) add("p", `✓ ${text("answer")}`, "answer", state);
      else if (has(`${key}.hint`)) {
        const hint = document.createElement("details");
        add("summary", t("tour.hint"), "", hint);
        add("p", text("hint"), "", hint);
        into.append(hint);
      }
      if (this.near && has(`${key}.near`)) add("p", text("near"), "near", state);
    }
    this.reading = step.solved ? add("p", "", "reading") : null;
    const reading = this.read();
    if (reading) this.showReading(reading);
    const row = add("p", "", "row");
    const button = (label: string, act: () => void, className = ""): HTMLButtonElement => {
      const made = add("button", label, className, row) as HTMLButtonElement;
      made.type = "button";
      made.addEventListener("click", act);
      return made;
    };
    if (this.at > 0) button(t("tour.back"), () => this.enter(this.at - 1));
    const isLast = this.at === this.steps.length - 1;
    const next = (): void => {
      if (isLast) this.end();
      else this.enter(this.at + 1);
    };
    if (this.solved) button(t(isLast ? "tour.finish" : "tour.next"), next, "primary");
    else {
      if (step.controls) button(t("tour.where"), () => this.point());
      button(t("tour.skip"), next);
    }
    button(t("tour.leave"), () => this.end());
    this.mark();
    if (focus) {
      title.focus({ preventScroll: true });
      if (into.getBoundingClientRect().top < 0) into.scrollIntoView({ block: "start" });
    }
  }

  /** The next step or the one before, as a presenter's remote control asks for it. */
  turn(forward: boolean): void {
    if (this.current === null) return;
    const to = this.at + (forward ? 1 : -1);
    if (to >= this.steps.length) this.end();
    else if (to >= 0) this.enter(to);
  }

  private end(): void {
    this.current = null;
    this.show();
    this.host.ended();
  }
}
