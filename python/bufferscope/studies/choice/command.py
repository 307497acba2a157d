"""A queue as a line for `tc`, without the parameters that it has anyway."""

from collections.abc import Mapping

from bufferscope import _core
from bufferscope.model.experiment import Point


def bare() -> dict[str, Mapping[str, object]]:
    """Each discipline whose defaults the kernel sets by itself, as an experiment file writes it, by its name.

    The limit of `pfifo` is the device's `txqueuelen`, and `tc` computes thresholds of `red`: they are always written.
    """
    return {name: {"qdisc": name} for name, kind in _core.QDISCS.items() if kind.has_kernel_defaults}


def arguments(point: Point, port: str, queue: Mapping[str, object], defaults: Mapping[str, Point]) -> str:
    """The queue of a point's port as arguments of `tc`; empty if Linux cannot be set to it.

    `defaults` has a point for each discipline of `bare`.
    """
    known = defaults.get(str(queue["qdisc"]))
    try:
        return _core.queue_arguments(point.core, port, known.core if known else None)
    except _core.PlanError:
        return ""
