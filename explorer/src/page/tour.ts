// A guided tour: steps with a question each, which the reader answers by moving something.

import type { Document } from "./document";
import type { Meaning } from "./meaning";
import type { Result } from "./session";
import type { State } from "./state";
import { has, t, type Key } from "./texts";
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
  /** The run in one sentence; empty while there is none. */
  reading: () => string;
}

export class Tour {
  current: string | null = null;
  private at = 0;
  private solved = false;
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
    const setup = step.setup?.();
    if (setup) {
      this.first = setup;
      this.host.go(setup);
      if (step.keep) this.waitToKeep = true;
    } else if (step.keep) this.host.keep();
    this.show(true);
  }

  private waitToKeep = false;
  private reading: HTMLElement | null = null;

  /** Looks whether the present picture answers the question. */
  check(): void {
    const step = this.steps[this.at];
    if (!this.current || !step) return;
    const reading = this.host.read();
    if (!reading || reading.result.run.summary === null) return;
    if (this.waitToKeep && reading.result.state === this.first) {
      this.waitToKeep = false;
      this.host.keep();
    }
    const words = this.host.reading();
    if (this.reading && this.reading.textContent !== words) this.reading.textContent = words;
    if (this.solved || !step.solved?.(reading)) return;
    this.solved = true;
    this.show();
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
    }
    if (step.solved) this.reading = add("p", this.host.reading(), "reading");
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
    else button(t("tour.skip"), next);
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
