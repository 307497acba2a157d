"""Families of queueing disciplines, by what they do about a queue that grows: few enough for a colour each."""

from collections.abc import Iterator, Mapping
from typing import Any

from bufferscope._core import QDISCS
from bufferscope.figures.source import PlottedPoint
from bufferscope.model.network import ports

WHEN_FULL, AQM, EACH_FLOW, COUPLED = "drops when full", "AQM, one queue", "a queue per flow", "coupled queues"
OTHERS = "other disciplines"
FAMILIES = (WHEN_FULL, AQM, EACH_FLOW, COUPLED, OTHERS)
"""In the order of their colours."""


def families(points: list[PlottedPoint]) -> list[str] | None:
    """The family of each point's discipline, if the points differ in the disciplines of one port; otherwise None."""
    queues = [{name: port.queue for name, port in ports(point.first.scenario).items()} for point in points]
    varying = [name for name in queues[0] if len({family(each[name]) if name in each else None for each in queues}) > 1]
    if len(varying) != 1 or not all(varying[0] in each for each in queues):
        return None
    return [family(each[varying[0]]) for each in queues]


def family(queue: Mapping[str, Any]) -> str:
    """The family of the disciplines inside, or of the discipline itself if it holds none."""
    found = {_of_kind(name) for name in _innermost(queue)}
    return found.pop() if len(found) == 1 else OTHERS


def _of_kind(name: str) -> str:
    """The family of a discipline with nothing inside: then those that could contain others drop when they are full."""
    kind = QDISCS.get(name)
    if kind is None:
        return OTHERS
    match kind.queues:
        case "per_flow":
            return EACH_FLOW
        case "coupled":
            return COUPLED
        case "shared":
            return AQM if kind.aqm else WHEN_FULL


def _innermost(queue: Mapping[str, Any]) -> Iterator[str]:
    inside = [kind for value in queue.values() for each in _tables(value) for kind in _innermost(each)]
    if inside:
        yield from inside
    elif "qdisc" in queue:
        yield queue["qdisc"]


def _tables(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tables(each)
