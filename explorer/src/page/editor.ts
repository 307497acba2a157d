// The experiment's file beside the picture: what a control changes is in the text, and what is written there is run.

import type { Refused } from "../core/protocol";

const WAIT_MS = 350;

export class Editor {
  private readonly text = document.getElementById("text") as HTMLTextAreaElement;
  private readonly lines = document.getElementById("lines")!;
  private readonly problem = document.getElementById("problem")!;
  private readonly notes = document.getElementById("notes")!;
  private waiting = 0;
  private wrong = 0;

  constructor(run: (toml: string) => void) {
    this.text.addEventListener("input", () => {
      this.number();
      clearTimeout(this.waiting);
      this.waiting = window.setTimeout(() => run(this.text.value), WAIT_MS);
    });
    this.text.addEventListener("scroll", () => (this.lines.scrollTop = this.text.scrollTop));
    this.text.addEventListener("keydown", (event) => {
      // Tab leaves the editor, as everywhere on a page; only Escape first closes nothing.
      if (event.key === "Escape") this.text.blur();
    });
  }

  /** Shows the text of the run, unless a reader is writing. */
  show(toml: string, notes: string[]): void {
    if (document.activeElement !== this.text && this.text.value !== toml) this.text.value = toml;
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
    this.problem.textContent = problem ? problem.message : "";
    this.text.setAttribute("aria-invalid", String(problem !== null));
    this.number();
  }

  private number(): void {
    const count = this.text.value.split("\n").length;
    const rows: Node[] = [];
    for (let line = 1; line <= count; line++) {
      if (line === this.wrong) {
        const mark = document.createElement("mark");
        mark.textContent = `▶ ${line}\n`;
        rows.push(mark);
      } else rows.push(document.createTextNode(`${line}\n`));
    }
    this.lines.replaceChildren(...rows);
    this.lines.scrollTop = this.text.scrollTop;
  }
}
