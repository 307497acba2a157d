// The network of an experiment: ways through it, and what is worth looking at.

import type { Opened, Port, Traffic } from "../core/protocol";

/** What only measures; everything else loads the network. */
const PROBES = new Set(["ping", "irtt", "dns"]);

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

  /** The ports from one node to another, over as few links as possible. */
  path(from: string, to: string): Port[] {
    const came = new Map<string, string>();
    const seen = new Set([from]);
    let edge = [from];
    while (edge.length && !seen.has(to)) {
      const next: string[] = [];
      for (const node of edge) {
        for (const [port, [start, end]] of this.ends) {
          if (start !== node || seen.has(end)) continue;
          seen.add(end);
          came.set(end, port);
          next.push(end);
        }
      }
      edge = next;
    }
    const found: Port[] = [];
    for (let node = to; node !== from; ) {
      const port = came.get(node);
      if (port === undefined) return [];
      found.unshift(this.ports.get(port)!);
      node = this.endsOf(port)[0];
    }
    return found;
  }

  /** The paths of an entry of traffic in both directions, that of its data first. */
  ways(traffic: Traffic): [Port[], Port[]] {
    return [this.path(traffic.from, traffic.to), this.path(traffic.to, traffic.from)];
  }

  /** The traffics that load a port, those over TCP first. */
  loads(port: string): Traffic[] {
    const found = this.opened.traffic.filter((each) => !measures(each) && this.crosses(each, port));
    return found.sort((a, b) => Number(b.kind === "tcp") - Number(a.kind === "tcp"));
  }

  private crosses(traffic: Traffic, port: string): boolean {
    const [out, back] = this.ways(traffic);
    const bothWays = !["tcp", "udp", "bittorrent", "web"].includes(traffic.kind);
    return out.some((each) => each.name === port) || (bothWays && back.some((each) => each.name === port));
  }

  /** The pings that cross a port, on either way; if none does, none. */
  probesOf(port: string): Traffic[] {
    const crossing = this.opened.traffic.filter((each) => {
      if (each.kind !== "ping" && each.kind !== "irtt") return false;
      return this.ways(each).some((way) => way.some((found) => found.name === port));
    });
    return crossing;
  }

  /** The port with the least rate among those that something loads: where packets wait. */
  bottleneck(): string | null {
    let best: { name: string; rate: number } | null = null;
    for (const traffic of this.opened.traffic) {
      if (measures(traffic)) continue;
      const [out, back] = this.ways(traffic);
      const loaded = ["tcp", "udp", "bittorrent", "web"].includes(traffic.kind) ? out : [...out, ...back];
      for (const port of loaded) {
        if (port.rate_bps === null || traffic.count === 0) continue;
        const rate = Math.min(...port.rate_steps.map((each) => each.bps), port.rate_bps);
        if (!best || rate < best.rate) best = { name: port.name, rate };
      }
    }
    if (best) return best.name;
    const rated = this.opened.network.ports.find((port) => port.rate_bps !== null);
    return rated?.name ?? this.opened.network.ports[0]?.name ?? null;
  }

  /** The propagation of a way there and back, in ns. */
  roundTrip(traffic: Traffic): number {
    return this.ways(traffic).flat().reduce((sum, port) => sum + port.delay_ns, 0);
  }
}
