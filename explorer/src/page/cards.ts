// The controls on the page, in a card for each part of the picture. Elements stay while their values change, so that a
// slider can be dragged and the keyboard's focus is not lost.

import type { Choice, Control, Part, Slider, Switch } from "./controls";
import { t } from "./texts";

const PARTS: readonly Part[] = ["sender", "shaper", "queue", "air", "line"];
const POSITIONS = 1000;

interface Row {
  root: HTMLElement;
  control: Control;
  update: (control: Control) => void;
}

export class Cards {
  private readonly rows = new Map<string, Row>();
  private readonly groups = new Map<Part, { root: HTMLElement; legend: HTMLElement; body: HTMLElement }>();

  /** `change` is called with what a control sets, and the control. */
  constructor(
    private readonly into: HTMLElement,
    private readonly change: (sets: [string, string][], control: Control) => void,
  ) {}

  show(controls: Control[], titles: Record<Part, string>): void {
    for (const part of PARTS) {
      const own = controls.filter((each) => each.part === part);
      let group = this.groups.get(part);
      if (!group && own.length) {
        const root = document.createElement("fieldset");
        root.className = `card ${part}`;
        const legend = document.createElement("legend");
        const body = document.createElement("div");
        root.append(legend, body);
        group = { root, legend, body };
        this.groups.set(part, group);
      }
      if (!group) continue;
      group.root.hidden = !own.length;
      if (group.legend.textContent !== titles[part]) group.legend.textContent = titles[part];
      this.into.append(...(group.root.isConnected ? [] : [group.root]));
    }
    // Cards in the order of the parts, whichever came first.
    const wanted = PARTS.flatMap((part) => this.groups.get(part)?.root ?? []);
    if (wanted.some((each, at) => this.into.children[at] !== each)) this.into.append(...wanted);
    const names = new Set(controls.map((each) => each.id));
    for (const [id, row] of this.rows) {
      if (!names.has(id)) {
        row.root.remove();
        this.rows.delete(id);
      }
    }
    const order = new Map<Part, HTMLElement[]>();
    for (const control of controls) {
      let row = this.rows.get(control.id);
      if (!row || row.control.kind !== control.kind) {
        row?.root.remove();
        row = this.make(control);
        this.rows.set(control.id, row);
      }
      row.control = control;
      row.update(control);
      order.set(control.part, [...(order.get(control.part) ?? []), row.root]);
    }
    for (const [part, roots] of order) {
      const body = this.groups.get(part)!.body;
      if (roots.length !== body.children.length || roots.some((each, at) => body.children[at] !== each)) body.append(...roots);
    }
  }

  clear(): void {
    for (const row of this.rows.values()) row.root.remove();
    this.rows.clear();
    for (const group of this.groups.values()) group.root.remove();
    this.groups.clear();
  }

  private make(control: Control): Row {
    const root = document.createElement("div");
    root.className = `control ${control.kind}`;
    root.dataset["control"] = control.id;
    const row: Row = { root, control, update: () => undefined };
    if (control.kind === "slider") this.slider(row);
    else if (control.kind === "choice") this.choice(row);
    else this.switch(row);
    return row;
  }

  private label(row: Row, input: HTMLElement): HTMLLabelElement {
    const label = document.createElement("label");
    input.id = `control-${row.control.id.replace(/[^A-Za-z0-9-]/g, "_")}`;
    label.htmlFor = input.id;
    return label;
  }

  private about(row: Row, input: HTMLElement): (control: Control) => void {
    const about = document.createElement("p");
    about.className = "about";
    about.id = `${input.id}-about`;
    row.root.append(about);
    return (control) => {
      about.hidden = !control.about;
      if (control.about) {
        about.textContent = control.about;
        input.setAttribute("aria-describedby", about.id);
      } else input.removeAttribute("aria-describedby");
    };
  }

  private slider(row: Row): void {
    const input = document.createElement("input");
    input.type = "range";
    input.min = "0";
    input.step = "1";
    const label = this.label(row, input);
    const output = document.createElement("output");
    output.htmlFor = input.id;
    const head = document.createElement("div");
    head.className = "head";
    head.append(label, output);
    row.root.append(head, input);
    const about = this.about(row, input);
    const most = (each: Slider): number => (each.linear && each.most - each.least <= 100 && each.most > 2 ? each.most - each.least : POSITIONS);
    const position = (each: Slider): number => {
      const value = Math.max(each.least, Math.min(each.most, each.value));
      const part = each.linear ? (value - each.least) / (each.most - each.least) : Math.log(value / each.least) / Math.log(each.most / each.least);
      return Math.round(part * most(each));
    };
    const valueAt = (each: Slider): number => {
      const part = Number(input.value) / most(each);
      return each.round(each.linear ? each.least + part * (each.most - each.least) : each.least * (each.most / each.least) ** part);
    };
    let moved: { at: string; value: number } | null = null;
    input.addEventListener("input", () => {
      const control = row.control as Slider;
      const value = valueAt(control);
      moved = { at: input.value, value };
      output.textContent = control.words(value);
      input.setAttribute("aria-valuetext", control.words(value));
      this.change(control.sets(value), control);
    });
    row.update = (each) => {
      const control = each as Slider;
      label.textContent = control.label;
      output.textContent = control.words(control.value);
      input.max = String(most(control));
      input.dataset["least"] = String(control.least);
      input.dataset["most"] = String(control.most);
      input.dataset["linear"] = String(control.linear ?? false);
      // A slider that a reader moves stays where it was put, although rounding may say a little otherwise.
      const own = moved && moved.value === control.value ? moved.at : String(position(control));
      if (input.value !== own) input.value = own;
      input.setAttribute("aria-valuetext", control.words(control.value));
      about(control);
    };
  }

  private choice(row: Row): void {
    const input = document.createElement("select");
    const label = this.label(row, input);
    row.root.append(label, input);
    const about = this.about(row, input);
    input.addEventListener("change", () => {
      const control = row.control as Choice;
      this.change(control.sets(input.value), control);
    });
    let shown = "";
    row.update = (each) => {
      const control = each as Choice;
      label.textContent = control.label;
      const key = JSON.stringify(control.options);
      if (key !== shown) {
        input.replaceChildren(...control.options.map(([value, text]) => new Option(text, value)));
        shown = key;
      }
      input.value = control.value;
      about(control);
    };
  }

  private switch(row: Row): void {
    const input = document.createElement("input");
    input.type = "checkbox";
    const label = this.label(row, input);
    const head = document.createElement("div");
    head.className = "head";
    head.append(input, label);
    row.root.append(head);
    const about = this.about(row, input);
    input.addEventListener("change", () => {
      const control = row.control as Switch;
      this.change(control.sets(input.checked), control);
    });
    row.update = (each) => {
      const control = each as Switch;
      label.textContent = control.label;
      input.checked = control.value;
      about(control);
    };
  }
}

export const partTitles = (names: { sender: string; device: string; before: string; line: string }): Record<Part, string> => ({
  sender: t("part.sender", { node: names.sender }),
  shaper: t("part.shaper", { node: names.before }),
  queue: t("part.queue", { node: names.device }),
  air: t("part.air", { node: names.device }),
  line: t("part.line", { link: names.line }),
});
