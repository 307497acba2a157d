// The picture of a test: round trips above, rates below, on one axis of time.

const GAP = 10;
const MOST_POINTS = 40000;

// The next round number above a value, for the end of an axis.
export function round(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value);
}

export class Chart {
  constructor(text) {
    this.text = text;
    this.pings = [];
    this.rates = [];
    this.phases = [];
    this.end = 1;
  }

  add({ at, pings, down, up }) {
    if (this.pings.length < MOST_POINTS) this.pings.push(...pings);
    if (this.rates.length < MOST_POINTS) this.rates.push([at, down ?? 0, up ?? 0]);
    this.end = Math.max(this.end, at);
  }

  begin(kind, at) {
    this.phases.push({ kind, at });
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["back", "text", "soft", "line", "panel", "delay", "down", "up"];
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  // Draws into a canvas of the size that it has on the screen.
  show(canvas) {
    const width = canvas.clientWidth || 320;
    const height = Math.round(Math.min(380, Math.max(250, width * 0.55)));
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.draw(context, width, height, this.colours());
  }

  draw(context, width, height, colours) {
    this.context = context;
    this.colours_ = colours;
    context.fillStyle = colours.back;
    context.fillRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    const left = 46;
    const right = width - GAP;
    const middle = Math.round(height * 0.58);
    const x = (ms) => left + ((right - left) * ms) / this.end;
    this.bands(x, height, right);
    const times = this.pings.map((ping) => ping[1]);
    this.panel({ top: 38, bottom: middle, left, right, x, most: round(Math.max(usual(times), 1)), label: this.text("ms") });
    this.points(x);
    const most = round(Math.max(usual(this.rates.flatMap((rate) => [rate[1], rate[2]])), 0.1));
    this.panel({ top: middle + 28, bottom: height - 22, left, right, x, most, label: this.text("mbit") });
    this.line(x, 1, colours.down, []);
    this.line(x, 2, colours.up, [5, 3]);
    context.textAlign = "right";
    context.fillStyle = colours.up;
    context.fillText(`┄ ${this.text("upload")}`, right, middle + 20);
    const before = context.measureText(`┄ ${this.text("upload")}`).width + 14;
    context.fillStyle = colours.down;
    context.fillText(`─ ${this.text("download")}`, right - before, middle + 20);
    context.textAlign = "left";
    context.fillStyle = colours.soft;
    const seconds = this.end / 1000;
    const step = round(seconds / (width < 420 ? 4 : 8));
    for (let second = 0; second <= seconds; second += step) {
      context.textAlign = second ? "center" : "left";
      if (x(second * 1000) < right - 16) context.fillText(`${Number(second.toFixed(1))} s`, x(second * 1000), height - 6);
    }
  }

  bands(x, height, right) {
    const { context, colours_: colours } = this;
    context.textAlign = "left";
    for (const [number, { kind, at }] of this.phases.entries()) {
      const end = this.phases[number + 1]?.at ?? this.end;
      context.fillStyle = number % 2 ? colours.back : colours.panel;
      context.fillRect(x(at), 0, x(end) - x(at), height);
      context.fillStyle = colours.soft;
      context.save();
      context.beginPath();
      context.rect(x(at), 0, Math.min(x(end), right) - x(at) - 2, 20);
      context.clip();
      context.fillText(this.text(kind), x(at) + 3, 14);
      context.restore();
    }
  }

  panel({ top, bottom, left, right, most, label }) {
    const { context, colours_: colours } = this;
    this.y = (value) => bottom - ((bottom - top) * Math.min(value, most)) / most;
    context.strokeStyle = colours.line;
    context.fillStyle = colours.soft;
    context.lineWidth = 1;
    context.textAlign = "right";
    for (const part of [0, 0.5, 1]) {
      const y = Math.round(this.y(most * part)) + 0.5;
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(right, y);
      context.stroke();
      context.fillText(String(Number((most * part).toPrecision(3))), left - 6, y + 4);
    }
    context.textAlign = "left";
    context.fillText(label, 4, top - 10);
  }

  points(x) {
    const { context, colours_: colours } = this;
    context.fillStyle = colours.delay;
    for (const [sent, rtt] of this.pings) context.fillRect(x(sent) - 1, this.y(rtt) - 1, 2, 2);
  }

  line(x, place, colour, dashes) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(dashes);
    context.beginPath();
    for (const [number, rate] of this.rates.entries()) {
      context[number ? "lineTo" : "moveTo"](x(rate[0]), this.y(rate[place]));
    }
    context.stroke();
    context.setLineDash([]);
  }
}

// What nearly all values are within. The few above are drawn at the upper edge.
const USUAL = 0.99;
const MARGIN = 1.1;
function usual(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[Math.ceil((sorted.length - 1) * USUAL)] ?? 0) * MARGIN;
}

function wrapped(context, text, width) {
  // Chinese has no spaces between words.
  const words = text.match(/[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+\s*/gu) ?? [];
  const lines = [""];
  for (const word of words) {
    if (lines.at(-1) && context.measureText(lines.at(-1) + word).width > width) lines.push("");
    lines[lines.length - 1] += word;
  }
  return lines;
}

// A picture of the whole result, to be sent to others.
export function picture(chart, { title, grade, sentences, about }) {
  const canvas = document.createElement("canvas");
  const [width, scale, margin] = [760, 2, 28];
  let context = canvas.getContext("2d");
  const fonts = { title: "700 22px system-ui, sans-serif", text: "16px system-ui, sans-serif", small: "12px system-ui, sans-serif" };
  context.font = fonts.text;
  const aside = grade ? 110 : 0;
  const lines = sentences.map((sentence) => wrapped(context, sentence, width - 2 * margin - aside));
  const height = 96 + lines.flat().length * 23 + lines.length * 6 + 400 + 36;
  canvas.width = width * scale;
  canvas.height = height * scale;
  context = canvas.getContext("2d");
  context.scale(scale, scale);
  const colours = chart.colours();
  context.fillStyle = colours.back;
  context.fillRect(0, 0, width, height);
  context.fillStyle = colours.text;
  context.font = fonts.title;
  context.fillText(title, margin, 46);
  if (grade) {
    context.font = "700 54px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(grade, width - margin - 40, 120);
    context.textAlign = "left";
  }
  context.font = fonts.text;
  let y = 84;
  for (const sentence of lines) {
    for (const line of sentence) {
      context.fillText(line, margin, y);
      y += 23;
    }
    y += 6;
  }
  context.save();
  context.translate(margin, y);
  context.beginPath();
  context.rect(0, 0, width - 2 * margin, 384);
  context.clip();
  chart.draw(context, width - 2 * margin, 384, colours);
  context.restore();
  context.font = fonts.small;
  context.textAlign = "left";
  context.fillStyle = colours.soft;
  context.fillText(about, margin, height - 16);
  return canvas;
}
