"""Ports as an experiment file names them."""

from collections.abc import Mapping

from bufferscope.metrics.network import ports
from bufferscope.scenario import SIDES, PortSettings, Scenario, Side

PURE_LIMITS = ("pfifo", "bfifo", "pfifo_head_drop", "pfifo_fast")
"""Disciplines that do nothing about a queue until it is full."""
FLOW_QUEUEING = ("sfq", "fq_codel", "fq_pie", "cake", "fq")
"""Disciplines that give each flow a queue: a flow that fills its own delays no other."""
MAY_BE_SLOWER = ("tbf", "htb", "prio", "netem", "cake")
"""Disciplines that may pass on less than the wire takes: themselves, or one inside them."""
SHAPERS = ("tbf", "htb", "prio", "netem")
"""Disciplines that leave the queue to those inside them; without any, it is tail drop."""


def port_side(scenario: Scenario, name: str) -> tuple[str, Side]:
    """The link and the direction of a port."""
    number = list(ports(scenario)).index(name)
    return scenario["links"][number // 2]["name"], SIDES[number % 2]


def port_settings(scenario: Scenario, name: str) -> PortSettings:
    """A port's settings: queue, ring, wire."""
    number = list(ports(scenario)).index(name)
    return scenario["links"][number // 2][SIDES[number % 2]]


def may_be_slower(scenario: Scenario, name: str) -> bool:
    """Whether a port can pass on less than its wire's rate although packets wait: a shaper, or a radio channel."""
    number = list(ports(scenario)).index(name)
    on_air = {station["link"] for wifi in scenario.get("wifi", ()) for station in wifi["stations"]}
    return number // 2 in on_air or ports(scenario)[name].queue["qdisc"] in MAY_BE_SLOWER


def does_nothing(queue: Mapping[str, object]) -> bool:
    """Whether a discipline, and all inside it, do nothing about a queue until it is full.

    >>> does_nothing({"qdisc": "tbf", "inner": {"qdisc": "fq_codel"}})
    False
    """
    if queue["qdisc"] in PURE_LIMITS:
        return True
    return queue["qdisc"] in SHAPERS and all(does_nothing(inner) for inner in _inside(queue))


def separates(queue: Mapping[str, object]) -> bool:
    """Whether a discipline, or one inside it, gives each flow a queue."""
    return queue["qdisc"] in FLOW_QUEUEING or any(separates(inner) for inner in _inside(queue))


def _inside(value: object) -> list[Mapping[str, object]]:
    """The disciplines inside a discipline, at any depth of its settings."""
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, list):
        parts = value
    else:
        return []
    return [
        found
        for part in parts
        for found in ([part] if isinstance(part, Mapping) and "qdisc" in part else _inside(part))
    ]
