"""Refuse scenarios with a driver's transmit ring, for engines that have none."""

from bufferscope.experiment import Point
from bufferscope.scenario import SIDES


def refusal(point: Point, why: str) -> str | None:
    """Why an engine without rings refuses a point; `why` is the engine's reason. None if no port has a ring."""
    port = _first(point)
    return port and f"{port} has a ring, and {why}: use --engine guest, or leave the ring out"


def _first(point: Point) -> str | None:
    names = [node["name"] for node in point.scenario["nodes"]]
    for link in point.scenario["links"]:
        a, b = (names[index] for index in link["ends"])
        for side, port in zip(SIDES, (f"{a}>{b}", f"{b}>{a}"), strict=True):
            if link[side].get("ring"):
                return port
    return None
