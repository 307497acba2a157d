"""Queueing disciplines by what they do with a queue, as the file of each in `crates/scenario/src/qdisc` has it.

A name that is no discipline of the native core, as in a run that another program observed, is in none of these.
"""

from bufferscope._core import QDISCS

PURE_LIMITS = frozenset(
    name for name, kind in QDISCS.items() if kind.queues == "shared" and not kind.aqm and not kind.contains_others
)
"""Disciplines that do nothing about a queue until it is full."""
FLOW_QUEUEING = frozenset(name for name, kind in QDISCS.items() if kind.queues == "per_flow")
"""Disciplines that give each flow a queue: a flow that fills its own delays no other."""
MANAGED_FLOWS = frozenset(name for name in FLOW_QUEUEING if QDISCS[name].aqm)
"""Those of them that also keep the queue of a flow short."""
CONTAINERS = frozenset(name for name, kind in QDISCS.items() if kind.contains_others)
"""Disciplines that leave the queue to those inside them; without any, it is tail drop."""
SHAPERS = frozenset(name for name in CONTAINERS if QDISCS[name].holds_back)
"""Those of them that set a rate or a delay."""
