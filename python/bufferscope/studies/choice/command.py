"""A queue as a line for `tc`, without the parameters that it has anyway."""

from collections.abc import Mapping

from bufferscope import _core
from bufferscope.model.experiment import Point

FIXED = ("codel", "fq_codel", "pie", "fq_pie", "cake", "fq", "sfq", "dualpi2")
"""Disciplines whose parameters the kernel sets by itself to what the schema of experiment files has as their defaults.

The limit of `pfifo` is the device's `txqueuelen`, and `tc` computes thresholds of `red`; so those are always written.
"""


def bare() -> dict[str, Mapping[str, object]]:
    """Each of these disciplines with its defaults, as an experiment file writes it, by its name."""
    return {kind: {"qdisc": kind} for kind in FIXED}


def arguments(point: Point, port: str, queue: Mapping[str, object], defaults: Mapping[str, Point]) -> str:
    """The queue of a point's port as arguments of `tc`; empty if Linux cannot be set to it.

    `defaults` has a point for each discipline of `bare`.
    """
    known = defaults.get(str(queue["qdisc"]))
    try:
        return _core.queue_arguments(point.core, port, known.core if known else None)
    except _core.PlanError:
        return ""
