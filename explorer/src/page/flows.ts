// Which flows there are, and the colour of each.

import type { Colours } from "./colours";
import type { Result } from "./session";

const NAMED = 8;

export interface FlowKind {
  /** The name in the core's list, such as `bulk/1`. */
  name: string;
  /** The traffic that it belongs to. */
  traffic: string;
  isProbe: boolean;
  /** Its position in the palette; probes have none. */
  colour: number;
}

export class Flows {
  readonly all: FlowKind[];
  private readonly byName: Map<string, FlowKind>;

  constructor({ run, segments }: Pick<Result, "run" | "segments">) {
    const { flows } = run.opened;
    // Changes can add traffic, and take none away.
    const { traffic } = segments.at(-1)!.network.opened;
    const kinds = new Map(traffic.map((each) => [each.name, each.kind]));
    // If there are many flows, all flows of an entry of traffic have the same colour.
    const data = flows.filter((name) => !isProbe(kinds, name));
    const single = data.length <= NAMED;
    const groups = new Map<string, number>();
    this.all = flows.map((name) => {
      const owner = ownerOf(kinds, name);
      const probe = isProbe(kinds, name);
      const key = single ? name : owner;
      if (!probe && !groups.has(key)) groups.set(key, groups.size);
      return { name, traffic: owner, isProbe: probe, colour: probe ? -1 : groups.get(key)! % NAMED };
    });
    this.byName = new Map(this.all.map((each) => [each.name, each]));
  }

  /** The colours of a legend: each group once. */
  legend(): FlowKind[] {
    const seen = new Set<number>();
    return this.all.filter((each) => !seen.has(each.colour) && seen.add(each.colour));
  }

  /** Whether each flow has a colour of its own. */
  get areSingle(): boolean {
    const data = this.all.filter((each) => !each.isProbe);
    return new Set(data.map((each) => each.colour)).size === data.length;
  }

  named(name: string): FlowKind | undefined {
    return this.byName.get(name);
  }

  colourOf(index: number, colours: Colours): string {
    const flow = this.all[index];
    return !flow || flow.isProbe ? colours.ink : colours.flows[flow.colour]!;
  }
}

function ownerOf(kinds: Map<string, string>, name: string): string {
  if (kinds.has(name)) return name;
  const at = name.lastIndexOf("/");
  const owner = at > 0 ? name.slice(0, at) : name;
  return kinds.has(owner) ? owner : (name.split("/")[0] ?? name);
}

function isProbe(kinds: Map<string, string>, name: string): boolean {
  const kind = kinds.get(ownerOf(kinds, name));
  return kind === "ping" || kind === "irtt" || kind === "dns" || kind === "voip" || kind === "game";
}
