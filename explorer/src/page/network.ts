// The network of an experiment: ways through it, and what is worth looking at.

import type { Opened, Port, Traffic } from "../core/protocol";

/** Paths that are remembered. */
const MOST_PATHS = 256;
/** What only measures; everything else loads the network. */
const PROBES = new Set(["ping", "irtt", "dns"]);
/** What carries data in one direction, from `from` to `to`. */
const CARRYING = ["tcp", "udp", "bittorrent", "web", "video"];

export const measures = (traffic: Traffic): boolean => PROBES.has(traffic.kind);

export class Network {
  readonly ports: Map<string, Port>;
  private readonly ends = new Map<string, [string, string]>();

  constructor(readonly opened: Opened) {
    const { ports, links } = opened.network;
    this.ports = new Map(ports.map((port) => [port.name, port]));
    // Two for each link, in the file's order: forward, reverse.
    links.forEach((link, at) => {
      const [forward, reverse] = [ports[2 * at], ports[2 * at + 1]];
      if (forward) this.ends.set(forward.name, link.ends);
      if (reverse) this.ends.set(reverse.name, [link.ends[1], link.ends[0]]);
    });
  }

  /** The node that sends on a port, and the one that receives. */
  endsOf(port: string): [string, string] {
    return this.ends.get(port) ?? ["", ""];
  }

  directionOf(port: Port): "forward" | "reverse" {
    return this.opened.network.ports.indexOf(port) % 2 ? "reverse" : "forward";
  }

  private opposite: Map<string, Port> | null = null;

  /** The other direction of a port's link. */
  other(port: Port): Port | undefined {
    const { ports } = this.opened.network;
    this.opposite ??= new Map(ports.flatMap((each, at) => (ports[at ^ 1] ? [[each.name, ports[at ^ 1]!]] : [])));
    return this.opposite.get(port.name);
  }

  private degrees: Map<string, number> | null = null;

  /** The number of a node's links. */
  degree(node: string): number {
    if (!this.degrees) {
      this.degrees = new Map();
      for (const { ends } of this.opened.network.links) for (const each of ends) this.degrees.set(each, (this.degrees.get(each) ?? 0) + 1);
    }
    return this.degrees.get(node) ?? 0;
  }

  /** The ports from one node to another, over as few links as possible. */
  path(from: string, to: string): readonly Port[] {
    const pair = `${from}>${to}`;
    const known = this.paths.get(pair);
    if (known) return known;
    if (this.paths.size >= MOST_PATHS) this.paths.clear();
    const found = this.way(from, to);
    this.paths.set(pair, found);
    return found;
  }

  private readonly paths = new Map<string, readonly Port[]>();

  private way(from: string, to: string): Port[] {
    const came = this.tree(from);
    const found: Port[] = [];
    for (let node = to; node !== from; ) {
      const port = came.get(node);
      if (port === undefined) return [];
      found.push(this.ports.get(port)!);
      node = this.endsOf(port)[0];
    }
    return found.reverse();
  }

  private readonly trees = new Map<string, Map<string, string>>();
  private leaving: Map<string, [port: string, to: string][]> | null = null;

  /** The port by which each node is reached from one node. */
  private tree(from: string): Map<string, string> {
    let came = this.trees.get(from);
    if (came) return came;
    if (!this.leaving) {
      this.leaving = new Map();
      for (const [port, [start, end]] of this.ends) {
        const known = this.leaving.get(start);
        if (known) known.push([port, end]);
        else this.leaving.set(start, [[port, end]]);
      }
    }
    this.trees.set(from, (came = new Map()));
    const seen = new Set([from]);
    // A set is walked in the order in which it grows.
    for (const node of seen) {
      for (const [port, end] of this.leaving.get(node) ?? []) {
        if (seen.has(end)) continue;
        seen.add(end);
        came.set(end, port);
      }
    }
    return came;
  }

  /** The paths of an entry of traffic in both directions, that of its data first. */
  ways(traffic: Traffic): [readonly Port[], readonly Port[]] {
    return [this.path(traffic.from, traffic.to), this.path(traffic.to, traffic.from)];
  }

  private readonly loading = new Map<string, Traffic[]>();
  private readonly probing = new Map<string, Traffic[]>();

  /** The entries of traffic that load a port, those over TCP first. */
  loads(port: string): readonly Traffic[] {
    let found = this.loading.get(port);
    if (!found) {
      found = this.opened.traffic.filter((each) => !measures(each) && this.crosses(each, port));
      found.sort((a, b) => Number(b.kind === "tcp") - Number(a.kind === "tcp"));
      this.loading.set(port, found);
    }
    return found;
  }

  private crosses(traffic: Traffic, port: string): boolean {
    const [out, back] = this.ways(traffic);
    const bothWays = !CARRYING.includes(traffic.kind);
    return out.some((each) => each.name === port) || (bothWays && back.some((each) => each.name === port));
  }

  /** The pings that cross a port, on either way; if none does, none. */
  probesOf(port: string): readonly Traffic[] {
    let found = this.probing.get(port);
    if (!found) {
      found = this.opened.traffic.filter((each) => {
        if (each.kind !== "ping" && each.kind !== "irtt") return false;
        return this.ways(each).some((way) => way.some((crossed) => crossed.name === port));
      });
      this.probing.set(port, found);
    }
    return found;
  }

  /** The port with the least rate among those that something loads: where packets wait. */
  bottleneck(): string | null {
    let best: { name: string; rate: number } | null = null;
    for (const traffic of this.opened.traffic) {
      if (measures(traffic)) continue;
      const [out, back] = this.ways(traffic);
      const loaded = CARRYING.includes(traffic.kind) ? out : [...out, ...back];
      for (const port of loaded) {
        if (port.rate_bps === null || traffic.count === 0) continue;
        const rate = this.slowest(port);
        if (!best || rate < best.rate) best = { name: port.name, rate };
      }
    }
    if (best) return best.name;
    const rated = this.opened.network.ports.find((port) => port.rate_bps !== null);
    return rated?.name ?? this.opened.network.ports[0]?.name ?? null;
  }

  private readonly least = new Map<string, number>();

  /** The least rate of a port's schedule. */
  private slowest(port: Port): number {
    let rate = this.least.get(port.name);
    if (rate === undefined) {
      rate = port.rate_steps.reduce((least, each) => Math.min(least, each.bps), port.rate_bps ?? Infinity);
      this.least.set(port.name, rate);
    }
    return rate;
  }

  /** The propagation of a way there and back, in ns. */
  roundTrip(traffic: Traffic): number {
    return this.ways(traffic).flat().reduce((sum, port) => sum + port.delay_ns, 0);
  }
}
