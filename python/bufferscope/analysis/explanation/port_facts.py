"""Ports as an experiment file names them, and what their settings say."""

from collections.abc import Mapping
from typing import Any

from bufferscope.model.directions import SIDES, Side
from bufferscope.model.disciplines import CONTAINERS, FLOW_QUEUEING, PURE_LIMITS
from bufferscope.model.network import Encapsulation, ports
from bufferscope.model.scenario import PortSettings, Scenario

FULL_IP_BYTES, ETHERNET_BYTES = 1500, 14


def port_side(scenario: Scenario, name: str) -> tuple[str, Side]:
    """The link and the direction of a port."""
    number = list(ports(scenario)).index(name)
    return scenario["links"][number // 2]["name"], SIDES[number % 2]


def port_settings(scenario: Scenario, name: str) -> PortSettings:
    """A port's settings: queue, ring, wire."""
    number = list(ports(scenario)).index(name)
    return scenario["links"][number // 2][SIDES[number % 2]]


def may_be_slower(scenario: Scenario, name: str) -> bool:
    """Whether a port can pass on less than its wire's rate although packets wait: a shaper, or a radio channel.

    The rate of `cake` is what it is set to, unless it adapts: packets that it drops from a backlog would count as sent.
    """
    queue = ports(scenario)[name].queue
    is_adapting = bool(queue.get("autorate_ingress"))
    return wifi_name(scenario, name) is not None or is_adapting or queue["qdisc"] in CONTAINERS


def wifi_name(scenario: Scenario, name: str) -> str | None:
    """The Wi-Fi network that a port sends in; None for a wire."""
    number = list(ports(scenario)).index(name) // 2
    networks = scenario.get("wifi", ())
    return next(
        (each["name"] for each in networks if number in [station["link"] for station in each["stations"]]), None
    )


def rate_varies(scenario: Scenario, name: str) -> bool:
    """Whether a port has no rate to shape to: it has several, changes it by itself, or shares a radio channel."""
    settings = port_settings(scenario, name)
    is_steady = "variation" not in settings and "boost" not in settings and len(settings["rate"] or ()) == 1
    return not is_steady or wifi_name(scenario, name) is not None


def shaped_bps(queue: Mapping[str, Any]) -> float | None:
    """The rate that a discipline is set to, in bits of Ethernet frames; None if it does not limit the rate.

    >>> shaped_bps({"qdisc": "tbf", "rate_bps": 4e6, "inner": {"qdisc": "cake", "bandwidth_bps": 3e6}})
    3000000.0
    """
    match queue["qdisc"]:
        case "cake" if not queue.get("autorate_ingress"):
            own = queue.get("bandwidth_bps") and queue["bandwidth_bps"] * _frame_share(queue.get("link_layer", {}))
        case "tbf":
            own = queue["rate_bps"]
        case "netem":
            own = (queue.get("rate") or {}).get("rate_bps")
        case "htb":
            roots = [each for each in queue["classes"] if each["parent"] is None]
            return float(roots[0]["ceil_bps"]) if len(roots) == 1 and queue["default"] is not None else None
        case _:
            return None
    rates = [own, *(shaped_bps(inner) for inner in _inside(queue))]
    return min((float(rate) for rate in rates if rate), default=None)


def _frame_share(layer: Mapping[str, Any]) -> float:
    """What a full Ethernet frame is of the length that cake counts for it."""
    if not layer or layer["raw"]:
        return 1.0
    counted = Encapsulation(layer["overhead_bytes"], layer["mpu_bytes"], layer["cells"]).frame_bytes(FULL_IP_BYTES)
    return (FULL_IP_BYTES + ETHERNET_BYTES) / counted


def does_nothing(queue: Mapping[str, object]) -> bool:
    """Whether a discipline, and all inside it, do nothing about a queue until it is full.

    >>> does_nothing({"qdisc": "tbf", "inner": {"qdisc": "fq_codel"}})
    False
    """
    if queue["qdisc"] in PURE_LIMITS:
        return True
    return queue["qdisc"] in CONTAINERS and all(does_nothing(inner) for inner in _inside(queue))


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
