"""The vantage points of a network: layers of ports at which packets are seen. Each is an interface of a file."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bufferscope.base.errors import InputError, printable
from bufferscope.base.names import closest
from bufferscope.model.directions import SIDES, Side
from bufferscope.model.scenario import Link, Scenario

LAYERS = {
    "qdisc": "packets as they arrive at the queueing discipline, which may drop them",
    "ring": "packets as they pass from the queueing discipline into the driver's ring",
    "wire": "packets as their transmission begins",
    "arrived": "packets as they arrive at the other end of the link",
    "dropped": "packets that were dropped or lost, each with the reason as a comment",
}
"""Where in a port packets are seen, and what an interface of the file shows there."""
ON_AIR = "packets as they arrive over the air, after retries"


class VantagePoint(NamedTuple):
    """A layer of a port."""

    port: int
    """The port's number: that of its link times two, plus one for the reverse direction."""
    port_name: str
    layer: str
    about: str
    """What is seen there."""

    @property
    def name(self) -> str:
        """The interface's name in a file."""
        return f"{self.port_name} {self.layer}"

    @property
    def description(self) -> str:
        """What the interface shows, in a sentence."""
        return f"{self.port_name}: {self.about}"


def in_simulator(scenario: Scenario) -> list[VantagePoint]:
    """All vantage points of the simulator."""
    on_air = {station["link"] for wifi in scenario.get("wifi", []) for station in wifi["stations"]}
    found = []
    for number, name, link, key in _ports(scenario):
        is_on_air = number // 2 in on_air
        has = {"wire", "arrived", "dropped"}
        has |= {"qdisc"} if link[key]["rate"] is not None else set()
        has |= {"ring"} if link[key].get("ring") or is_on_air else set()
        for layer, words in LAYERS.items():
            if layer in has:
                found.append(VantagePoint(number, name, layer, ON_AIR if layer == "wire" and is_on_air else words))
    return found


def on_kernel(scenario: Scenario) -> list[VantagePoint]:
    """The vantage points of a kernel's capture, in the order of the numbers that the agent gives them.

    They are the two ends of every port's link, where the kernel hands packets to the device's driver or gets them from
    it. With a ring, that is before the ring.
    """
    found = []
    for number, name, link, key in _ports(scenario):
        for layer in ("ring" if link[key].get("ring") else "wire", "arrived"):
            found.append(VantagePoint(number, name, layer, LAYERS[layer]))
    return found


def choose(
    scenario: Scenario, points: Sequence[VantagePoint], ports: Sequence[str], layers: Sequence[str]
) -> list[VantagePoint]:
    """Those of these ports and layers.

    If neither is named, those of the host that sends the first traffic; without layers, where packets leave each of the
    ports; without ports, the layers of all ports. Raises `InputError` for names that do not exist, or if nothing is
    left.
    """
    for layer in layers:
        if layer not in LAYERS:
            raise InputError(
                f"--layer: found {printable(layer)!r}{closest(layer, LAYERS)}; allowed: {', '.join(LAYERS)}"
            )
    names = [name for _, name, _, _ in _ports(scenario)]
    for port in ports:
        if port not in names:
            raise InputError(
                f"--port: found {printable(port)!r}{closest(port, names)}; the run has: {', '.join(names)}"
            )
    sender = scenario["traffic"][0]["from"]
    shown = []
    for point in points:
        if ports and point.port_name not in ports:
            continue
        wanted = layers or _by_default(scenario, point, points, None if ports else sender)
        if point.layer in wanted:
            shown.append(point)
    if not shown:
        there = list(dict.fromkeys(point.layer for point in points if not ports or point.port_name in ports))
        raise InputError(
            f"--layer: no port that was chosen has the layer {' or '.join(layers)}; there is: {', '.join(there)}"
        )
    return shown


def _by_default(
    scenario: Scenario, point: VantagePoint, points: Sequence[VantagePoint], sender: int | None
) -> Sequence[str]:
    """The layers that are shown of a vantage point's port: one, so that no packet appears twice."""
    link, side = scenario["links"][point.port // 2], point.port % 2
    start, end = link["ends"][side], link["ends"][1 - side]
    if sender in (None, start):
        has = {other.layer for other in points if other.port == point.port}
        return ("wire",) if "wire" in has else ("ring",)
    return ("arrived",) if end == sender else ()


def _ports(scenario: Scenario) -> Iterator[tuple[int, str, Link, Side]]:
    """Each port's number and name, its link, and the link's key for the port."""
    nodes = [node["name"] for node in scenario["nodes"]]
    for index, link in enumerate(scenario["links"]):
        ends = [nodes[end] for end in link["ends"]]
        for side, key in enumerate(SIDES):
            yield 2 * index + side, f"{ends[side]}>{ends[1 - side]}", link, key
