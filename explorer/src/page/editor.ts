// The experiment's file beside the picture: what a control changes is in the text, and what is written there is run.

import type { Refused } from "../core/protocol";
import type { Completer, Completion } from "./completion";
import { t } from "./texts";

const WAIT_MS = 350;

export class Editor {
  private readonly text = document.getElementById("text") as HTMLTextAreaElement;
  private readonly lines = document.getElementById("lines")!;
  private readonly problem = document.getElementById("problem")!;
  private readonly notes = document.getElementById("notes")!;
  private waiting = 0;
  private wrong = 0;
  private numbering = 0;
  private ran = "";

  private readonly list = document.getElementById("completions")!;
  private readonly about = document.getElementById("completion-about")!;
  private completer: Promise<Completer> | null = null;
  private offered: Completion | null = null;
  private chosen = 0;

  /** `run` gets what was written, and `complete` gives what may be written. */
  constructor(
    private readonly run: (toml: string) => void,
    private readonly complete: () => Promise<Completer>,
  ) {
    this.text.addEventListener("input", () => {
      this.written();
      if (this.offered) void this.offer();
    });
    this.text.addEventListener("scroll", () => (this.lines.scrollTop = this.text.scrollTop));
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.text.addEventListener("blur", () => this.close());
    this.text.addEventListener("click", () => this.close());
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const item = event.target instanceof Element ? event.target.closest("li") : null;
      if (item) this.insert([...this.list.children].indexOf(item));
    });
  }

  private written(): void {
    // A pasted text may come line by line.
    cancelAnimationFrame(this.numbering);
    this.numbering = requestAnimationFrame(() => this.number());
    clearTimeout(this.waiting);
    this.waiting = window.setTimeout(() => {
      this.ran = this.text.value;
      this.run(this.ran);
    }, WAIT_MS);
  }

  // Tab leaves the editor, as everywhere on a page.
  private key(event: KeyboardEvent): void {
    if (event.key === " " && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.offer();
    } else if (event.key === "Escape") {
      if (this.offered) this.close();
      else this.text.blur();
    } else if (this.offered && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const count = this.offered.options.length;
      this.select((this.chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
    } else if (this.offered && event.key === "Enter") {
      event.preventDefault();
      this.insert(this.chosen);
    }
  }

  // Shows what may be written at the caret.
  private async offer(): Promise<void> {
    this.completer ??= this.complete();
    let completer: Completer;
    try {
      completer = await this.completer;
    } catch (error) {
      this.completer = null;
      this.about.textContent = t("failed", { message: String(error) });
      return;
    }
    const caret = this.text.selectionStart;
    this.offered = completer.at(this.text.value, caret);
    if (!this.offered) {
      this.close();
      this.about.textContent = t("editor.nothing");
      return;
    }
    this.list.hidden = false;
    this.list.replaceChildren(
      ...this.offered.options.map((option, at) => {
        const item = document.createElement("li");
        item.setAttribute("role", "option");
        item.id = `completion-${at}`;
        item.textContent = option.text.replace(/ = $/, "");
        return item;
      }),
    );
    const line = this.text.value.slice(0, caret).split("\n").length;
    const height = parseFloat(getComputedStyle(this.text).lineHeight);
    const below = line * height + 14 - this.text.scrollTop;
    const room = this.text.clientHeight;
    this.list.style.top = `${below + 190 < room ? below : Math.max(4, below - height - 196)}px`;
    this.select(0);
  }

  private select(at: number): void {
    this.chosen = at;
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
    const item = this.list.children[at];
    item?.scrollIntoView({ block: "nearest" });
    this.text.setAttribute("aria-activedescendant", item?.id ?? "");
    this.about.textContent = this.offered?.options[at]?.about ?? "";
  }

  private insert(at: number): void {
    const offered = this.offered;
    const option = offered?.options[at];
    this.close();
    if (!offered || !option) return;
    this.text.setRangeText(option.text, offered.from, offered.to, "end");
    this.written();
  }

  private close(): void {
    this.offered = null;
    this.list.hidden = true;
    this.about.textContent = "";
    this.text.removeAttribute("aria-activedescendant");
  }

  /** Shows the text of the run. */
  show(toml: string, notes: string[]): void {
    // A reader may have written on since this text was run.
    const isOwn = document.activeElement === this.text && toml === this.ran;
    if (!isOwn && this.text.value !== toml) this.text.value = toml;
    this.showNotes(notes);
    this.number();
  }

  /** Shows what the core notes about the file, and the run's warnings. */
  showNotes(notes: string[]): void {
    this.notes.replaceChildren(
      ...notes.map((each) => {
        const item = document.createElement("li");
        item.textContent = each;
        return item;
      }),
    );
  }

  /** Shows the core's own message, and marks its line. */
  showProblem(problem: Refused | null): void {
    this.wrong = problem?.line ?? 0;
    this.problem.textContent = problem ? (problem.line ? `${t("editor.line", { line: problem.line })} ` : "") + problem.message : "";
    this.text.setAttribute("aria-invalid", String(problem !== null));
    this.number();
  }

  private numbered = "";

  // The numbers of the lines, with a mark at the wrong one.
  private number(): void {
    const count = this.text.value.split("\n").length;
    const key = `${count} ${this.wrong}`;
    if (key !== this.numbered) {
      this.numbered = key;
      const range = (from: number, to: number): string => Array.from({ length: Math.max(0, to - from) }, (_, at) => `${from + at}\n`).join("");
      const isMarked = this.wrong > 0 && this.wrong <= count;
      const mark = document.createElement("mark");
      mark.textContent = `▶ ${this.wrong}\n`;
      this.lines.replaceChildren(...(isMarked ? [range(1, this.wrong), mark, range(this.wrong + 1, count + 1)] : [range(1, count + 1)]));
    }
    this.lines.scrollTop = this.text.scrollTop;
  }
}
