// The picture as an animation that repeats, to put into a talk or a message.

import { applyPalette, GIFEncoder, quantize } from "gifenc";
import type { Colours } from "./colours";
import { Stage, type Scene } from "./stage";
import { fixed } from "./units";

const WIDTH = 720;
const STAGE = 170;
const CAPTION = 26;
/** Frames a second. GIF counts hundredths of a second. */
const RATE = 12.5;
/** Seconds of the reader's time. */
const LENGTH_S = 4;
const MOST_COLOURS = 128;

export interface Film {
  /** The scenes at a time, below one another. */
  scenes: (t: number) => Scene[];
  title: string;
  /** Where the animation begins, where it would begin at the latest, and how fast it is played. */
  from_ns: number;
  end_ns: number;
  speed: number;
  colours: Colours;
}

/** Encodes the animation; `progress` is called with the part that is done. */
export async function gifOf(film: Film, progress: (part: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const frames = Math.round(LENGTH_S * RATE);
  const step_ns = (film.speed * 1e9) / RATE;
  const from_ns = Math.max(0, Math.min(film.from_ns, film.end_ns - frames * step_ns));
  const times = Array.from({ length: frames }, (_, at) => Math.min(film.end_ns, from_ns + at * step_ns));
  const count = film.scenes(from_ns).length;
  const height = count * STAGE + CAPTION;
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  const stages = Array.from({ length: count }, () => new Stage(document.createElement("canvas"), { width: WIDTH - 16, height: STAGE }));
  const pixels = (t: number): Uint8ClampedArray => {
    context.fillStyle = film.colours.paper;
    context.fillRect(0, 0, WIDTH, height);
    film.scenes(t).forEach((scene, at) => {
      stages[at]!.draw(scene, t, film.speed, film.colours);
      context.drawImage(stages[at]!.canvas, 8, at * STAGE);
    });
    context.font = '13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
    context.fillStyle = film.colours.ink;
    context.textAlign = "left";
    context.fillText(film.title, 10, height - 9, WIDTH - 110);
    context.textAlign = "right";
    context.fillText(`${fixed(t / 1e9, film.speed < 0.1 ? 4 : 2)} s`, WIDTH - 10, height - 9);
    return context.getImageData(0, 0, WIDTH, height).data;
  };
  // All frames have the colours of three of them: the drawing's own, and their mixtures at edges.
  const samples = [0, frames >> 1, frames - 1].map((at) => pixels(times[at]!));
  const together = new Uint8Array(samples.length * samples[0]!.length);
  samples.forEach((sample, at) => together.set(sample, at * sample.length));
  const palette = quantize(together, MOST_COLOURS);
  const gif = GIFEncoder();
  for (const [at, t] of times.entries()) {
    const first = at === 0 ? { palette, repeat: 0 } : {};
    gif.writeFrame(applyPalette(pixels(t), palette), WIDTH, height, { ...first, delay: 1000 / RATE });
    progress((at + 1) / frames);
    // The page goes on meanwhile.
    await new Promise((resume) => setTimeout(resume));
  }
  gif.finish();
  return new Uint8Array(gif.bytes());
}
