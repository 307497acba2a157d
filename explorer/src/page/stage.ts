// The packets of one port on a canvas: those that arrive, wait in the queueing discipline, wait in the ring, are on the
// wire, and are dropped. Everything is a function of the run and a time, so it can be played in both directions.

import type { Port } from "../core/protocol";
import type { Colours } from "./colours";
import { DISCIPLINES } from "./disciplines";
import type { Flows } from "./flows";
import type { Run } from "./run";
import { Place, type Track } from "./track";

const MOST_LANES = 6;
const LARGEST_CELL = 24;
const SMALL_BYTES = 300;
/** A packet of more than this travels as several segments (offload). */
const LARGE_BYTES = 3200;
/** Seconds on the screen in which a packet comes in, and in which a dropped one falls. */
const COMING_S = 0.12;
const FALLING_S = 0.55;

export interface Scene {
  run: Run;
  port: Port;
  flows: Flows;
  /** The packets that the queue's box has room for, so that two scenes can be compared. */
  room: number;
  texts: { queue: string; ring: string; wire: string; sender: string; receiver: string; truncated: string };
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** How many packets the queue held at most: packets of the samples, or in the log. */
export function fullest(run: Run, port: string): number {
  const series = run.ports.get(port);
  let most = 0;
  if (series) for (const each of series.packets.values) most = Math.max(most, each);
  return most;
}

/** How many packets are where; for the words beside the picture, and for tests. */
export interface Counts {
  queue: number;
  ring: number;
  wire: number;
  dropped: number;
  marked: number;
}

/** What everything in a picture is drawn with. */
interface Pen {
  context: CanvasRenderingContext2D;
  colours: Colours;
  scene: Scene;
  track: Track;
  t: number;
}

/** The packets in sight, by where they are. */
interface Sorted {
  waiting: number[];
  inRing: number[];
  sent: number[];
  coming: number[];
  falling: number[];
  counts: Counts;
}

function sort(track: Track | null, t: number, speed: number): Sorted {
  const [waiting, inRing, sent, coming, falling]: [number[], number[], number[], number[], number[]] = [[], [], [], [], []];
  let marked = 0;
  track?.each(t, COMING_S * speed * 1e9, FALLING_S * speed * 1e9, (packet, place) => {
    const isHere = place !== Place.Dropped && track.came.at(packet) <= t;
    if (isHere && track.marked.at(packet) <= t) marked++;
    if (place === Place.Dropped) falling.push(packet);
    else if (place === Place.Wire) sent.push(packet);
    else if (place === Place.Ring) inRing.push(packet);
    else if (isHere) waiting.push(packet);
    else coming.push(packet);
  });
  const counts = { queue: waiting.length, ring: inRing.length, wire: sent.length, dropped: falling.length, marked };
  return { waiting, inRing, sent, coming, falling, counts };
}

export class Stage {
  counts: Counts = { queue: 0, ring: 0, wire: 0, dropped: 0, marked: 0 };
  /** null: the browser draws nothing on a canvas. */
  private readonly context: CanvasRenderingContext2D | null;
  private width = 0;
  private height = 0;

  /** Draws on a canvas of the page, or on one of a `fixed` size that is not in the page. */
  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly fixed: { width: number; height: number } | null = null,
  ) {
    this.context = canvas.getContext("2d");
  }

  /** Whether the browser can draw. */
  get draws(): boolean {
    return this.context !== null;
  }

  /** Draws a scene at `t` ns, played at `speed` times real time. */
  draw(scene: Scene, t: number, speed: number, colours: Colours): void {
    const track = scene.run.packets.get(scene.port.name);
    const isKnown = track?.covers(t) ?? false;
    const sorted = sort(isKnown ? track! : null, t, speed);
    this.counts = sorted.counts;
    const { context } = this;
    if (!context) return;
    this.fit(context);
    context.clearRect(0, 0, this.width, this.height);
    const layout = this.layout(scene.port);
    const pen: Pen = { context, colours, scene, track: track!, t };
    this.boxes(pen, layout);
    if (track && isKnown) this.packets(pen, sorted, speed, layout);
    else if (track) {
      context.fillStyle = colours.aware;
      context.font = this.font(13);
      context.textAlign = "left";
      context.fillText(scene.texts.truncated, layout.queue.x + 10, layout.queue.y + layout.queue.height / 2 + 4, layout.queue.width - 20);
    }
  }

  private font(size: number, weight = 400): string {
    return `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif`;
  }

  private fit(context: CanvasRenderingContext2D): void {
    const { canvas, fixed } = this;
    const [width, height] = fixed ? [fixed.width, fixed.height] : [canvas.clientWidth, canvas.clientHeight];
    // The page may be zoomed by its own styles, which the ratio of pixels does not contain.
    const zoom = width ? canvas.getBoundingClientRect().width / width : 1;
    const scale = fixed ? 1 : Math.min((devicePixelRatio || 1) * zoom, 3);
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    this.width = width;
    this.height = height;
    context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  private layout(port: Port): { incoming: Box; queue: Box; ring: Box | null; wire: Box } {
    const { width, height } = this;
    const narrow = width < 560;
    const [top, bottom] = [24, 26];
    const tall = height - top - bottom;
    const coming = narrow ? 26 : Math.round(width * 0.09);
    const onWire = Math.round(width * (narrow ? 0.24 : 0.27));
    const hasRing = port.has_ring || port.radio;
    const inRing = hasRing ? Math.round(width * (narrow ? 0.16 : 0.12)) : 0;
    const gap = hasRing ? 10 : 0;
    const queue = { x: coming, y: top, width: width - coming - onWire - inRing - gap - 8, height: tall };
    const ring = hasRing ? { x: queue.x + queue.width + gap, y: top, width: inRing, height: tall } : null;
    const end = ring ? ring.x + ring.width : queue.x + queue.width;
    return {
      incoming: { x: 0, y: top, width: coming, height: tall },
      queue,
      ring,
      wire: { x: end + 4, y: top + tall / 2 - 13, width: width - end - 8, height: 26 },
    };
  }

  private boxes({ context, colours, scene }: Pen, layout: ReturnType<Stage["layout"]>): void {
    context.lineWidth = 1.5;
    const { queue, ring, wire } = layout;
    for (const box of ring ? [queue, ring] : [queue]) {
      context.fillStyle = colours.raised;
      context.strokeStyle = colours.muted;
      // Open on the left, where packets come in.
      context.fillRect(box.x, box.y, box.width, box.height);
      context.beginPath();
      context.moveTo(box.x, box.y + 0.5);
      context.lineTo(box.x + box.width - 0.5, box.y + 0.5);
      context.lineTo(box.x + box.width - 0.5, box.y + box.height - 0.5);
      context.lineTo(box.x, box.y + box.height - 0.5);
      context.stroke();
    }
    context.strokeStyle = colours.muted;
    context.lineWidth = 1;
    context.beginPath();
    for (const y of [wire.y + 0.5, wire.y + wire.height - 0.5]) {
      context.moveTo(wire.x, y);
      context.lineTo(wire.x + wire.width, y);
    }
    context.stroke();
    context.fillStyle = colours.muted;
    context.font = this.font(12.5, 600);
    context.textAlign = "left";
    context.fillText(scene.texts.queue, queue.x + 2, 16, queue.width - 4);
    if (ring) context.fillText(scene.texts.ring, ring.x + 2, 16, ring.width + 6);
    context.textAlign = "right";
    context.fillText(scene.texts.wire, wire.x + wire.width, wire.y - 8, wire.width - 4);
    context.fillText(`${scene.texts.receiver} →`, wire.x + wire.width, wire.y + wire.height + 18, wire.width - 4);
  }

  private packets(pen: Pen, sorted: Sorted, speed: number, layout: ReturnType<Stage["layout"]>): void {
    const { queue, ring, wire, incoming } = layout;
    this.fill(pen, sorted.waiting, queue, pen.scene.room);
    if (ring) this.fill(pen, sorted.inRing, ring, Math.max(64, sorted.inRing.length), false);
    this.onWire(pen, sorted.sent, wire);
    this.coming(pen, COMING_S * speed * 1e9, sorted.coming, incoming, queue);
    this.falling(pen, FALLING_S * speed * 1e9, sorted.falling, queue);
  }

  // Packets in a box, from the exit on the right; a lane for each flow if the discipline takes turns.
  private fill(pen: Pen, packets: number[], box: Box, room: number, lanes = true): void {
    const { context, colours, scene, track } = pen;
    const kind = scene.port.qdisc === null ? undefined : DISCIPLINES[scene.port.qdisc];
    const fair = lanes && kind !== undefined && kind.queues !== "shared";
    const groups = new Map<number, number[]>();
    for (const packet of packets) {
      const lane = fair ? track.flow.at(packet) % MOST_LANES : 0;
      const found = groups.get(lane);
      if (found) found.push(packet);
      else groups.set(lane, [packet]);
    }
    const inner = { x: box.x + 3, y: box.y + 3, width: box.width - 6, height: box.height - 6 };
    const least = fair ? Math.min(MOST_LANES, Math.max(2, scene.flows.all.length)) : 1;
    const tall = inner.height / least;
    const most = Math.max(room, fair ? Math.max(0, ...[...groups.values()].map((each) => each.length)) * least : packets.length);
    const size = cellSize(inner.width, tall, Math.ceil(most / least));
    const rows = Math.max(1, Math.floor(tall / size));
    if (fair) {
      context.fillStyle = colours.line;
      for (let lane = 1; lane < least; lane++) context.fillRect(box.x, inner.y + lane * tall - 0.5, box.width - 1, 1);
    }
    for (const [lane, members] of groups) {
      const top = fair ? inner.y + (lane % least) * tall : inner.y;
      members.forEach((packet, at) => {
        const x = inner.x + inner.width - (Math.floor(at / rows) + 1) * size;
        const y = top + tall - ((at % rows) + 1) * size;
        this.packet(pen, packet, x, y, size);
      });
    }
  }

  private packet({ context, colours, scene, track, t }: Pen, packet: number, x: number, y: number, size: number): void {
    const bytes = track.bytes.at(packet);
    const gap = size > 6 ? 1 : size > 3 ? 0.5 : 0;
    context.fillStyle = scene.flows.colourOf(track.flow.at(packet), colours);
    if (bytes < SMALL_BYTES && size > 3) {
      const small = Math.max(2.5, size * 0.5);
      context.beginPath();
      context.arc(x + size / 2, y + size / 2, small / 2, 0, 7);
      context.fill();
    } else {
      context.fillRect(x, y, size - gap, size - gap);
      if (bytes > LARGE_BYTES && size > 6) {
        context.fillStyle = colours.raised;
        for (let line = 1; line < 3; line++) context.fillRect(x + (line * (size - gap)) / 3 - 0.5, y, 1, size - gap);
      }
    }
    if (track.marked.at(packet) <= t) {
      context.strokeStyle = colours.ink;
      context.lineWidth = Math.min(2, size / 4);
      context.strokeRect(x + 0.5, y + 0.5, size - gap - 1, size - gap - 1);
      context.fillStyle = colours.paper;
      context.fillRect(x + size * 0.35, y + size * 0.35, size * 0.3, size * 0.3);
    }
  }

  private onWire(pen: Pen, packets: number[], wire: Box): void {
    const { scene, track, t } = pen;
    const size = 13;
    for (const packet of packets) {
      const start = track.sent.at(packet);
      const end = Number.isNaN(track.arrived.at(packet)) ? start + scene.port.delay_ns : track.arrived.at(packet);
      const part = end > start ? Math.min(1, (t - start) / (end - start)) : 1;
      const x = wire.x + (wire.width - size) * part;
      this.packet(pen, packet, x, wire.y + (wire.height - size) / 2, size);
    }
  }

  private coming(pen: Pen, lead: number, packets: number[], from: Box, queue: Box): void {
    const { track, t } = pen;
    const size = Math.min(9, Math.max(6, from.width / 4));
    for (const packet of packets) {
      const part = lead > 0 ? 1 - (track.came.at(packet) - t) / lead : 1;
      const y = queue.y + queue.height / 2 - size / 2 + jitter(packet) * (queue.height * 0.7);
      this.packet(pen, packet, from.x + (from.width - size) * part, y, size);
    }
  }

  // A dropped packet falls out of the queue, crossed out.
  private falling(pen: Pen, trail: number, packets: number[], queue: Box): void {
    const { context, colours, track, t } = pen;
    const size = 12;
    const from = packets.length > 60 ? packets.slice(-60) : packets;
    for (const packet of from) {
      const age = trail > 0 ? (t - track.dropped.at(packet)) / trail : 1;
      if (age > 1) continue;
      const atTail = track.dropped.at(packet) - track.came.at(packet) < 1e3;
      const x = (atTail ? queue.x + 4 : queue.x + queue.width - 18) + jitter(packet) * 14 + 10 * age * (atTail ? -1 : 0);
      const y = queue.y + queue.height * 0.55 + (this.height - queue.y - queue.height * 0.55 - size) * age * age;
      context.globalAlpha = 1 - 0.6 * age;
      this.packet(pen, packet, x, y, size);
      context.strokeStyle = colours.bad;
      context.lineWidth = 2.5;
      context.beginPath();
      context.moveTo(x - 2, y - 2);
      context.lineTo(x + size + 1, y + size + 1);
      context.moveTo(x + size + 1, y - 2);
      context.lineTo(x - 2, y + size + 1);
      context.stroke();
      context.globalAlpha = 1;
    }
  }
}

/** The largest square of which `count` fit into a box. */
function cellSize(width: number, height: number, count: number): number {
  let size = Math.min(LARGEST_CELL, height);
  while (size > 1.5 && Math.floor(width / size) * Math.max(1, Math.floor(height / size)) < count) size -= size > 6 ? 0.5 : 0.25;
  return Math.max(1.5, size);
}

/** A number between -0.5 and 0.5 that is the same for a packet at every frame. */
function jitter(packet: number): number {
  return ((packet * 2654435761) % 4096) / 4096 - 0.5;
}
