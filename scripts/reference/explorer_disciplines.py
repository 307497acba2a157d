"""What the explorer's page knows of the queueing disciplines, as a module of TypeScript."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bufferscope import _core

PATH = Path(__file__).parents[2] / "explorer" / "src" / "page" / "disciplines.ts"
HEADER = """\
// Made from `crates/scenario/src/qdisc` by `make reference`; edit that, not this.

/** What a queueing discipline does, whatever its parameters. */
export interface Discipline {
  /** Whether flows share a queue or few bands, have one each, or there are two with coupled AQMs (L4S). */
  queues: "shared" | "per_flow" | "coupled";
  /** What it measures to drop or mark before the queue is full; null if it does not. */
  aqm: "length" | "delay" | null;
  /** Whether there can be other disciplines inside it, which then have the queue. */
  containsOthers: boolean;
  /** The default of its key `ecn`, if it has one. */
  ecn?: boolean;
  /** The default of its key `target`, if it has one that depends on no other key. */
  target?: string;
}

/** In the order of lists. */
export const DISCIPLINES: Readonly<Record<string, Discipline>> = {
"""


def module() -> str:
    """The text of the module."""
    variants = json.loads(_core.schema())["$defs"]["Queue"]["oneOf"]
    keys = {variant["properties"]["qdisc"]["const"]: variant["properties"] for variant in variants}
    lines = (f"  {name}: {_table(kind, keys[name])},\n" for name, kind in _core.QDISCS.items())
    return f"{HEADER}{''.join(lines)}}};\n"


def _table(kind: _core.Discipline, keys: Mapping[str, Any]) -> str:
    facts: dict[str, object] = {"queues": kind.queues, "aqm": kind.aqm, "containsOthers": kind.contains_others}
    facts |= {key: keys[key]["default"] for key in ("ecn", "target") if "default" in keys.get(key, {})}
    return f"{{ {', '.join(f'{name}: {json.dumps(value)}' for name, value in facts.items())} }}"
