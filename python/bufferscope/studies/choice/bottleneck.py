"""Find the bottleneck: the port at which the data waits."""

from collections.abc import Iterator
from dataclasses import dataclass

from bufferscope.base.errors import InputError
from bufferscope.base.names import closest
from bufferscope.model.directions import SIDES, Side
from bufferscope.model.network import CARRYING, Port, path, ports, probers, traffic_ends, traffic_named
from bufferscope.model.scenario import Scenario, Traffic

FRAME_BYTES = 1514
"""Of a full packet on Ethernet."""


@dataclass(frozen=True)
class Bottleneck:
    """A port, and the data that crosses it."""

    port: Port
    side: Side
    """The direction of the link that the port sends in."""
    sender: str
    receiver: str
    """The ends of the first traffic whose data crosses it."""
    round_trip_ns: int
    """The longest round trip of the data that crosses it, without queues."""
    carried: tuple[str, ...]
    """The traffic whose data crosses it."""
    elsewhere: tuple[str, ...] = ()
    """The traffic whose data does not cross it, such as that of the other direction."""
    probers: tuple[str, ...] = ()
    """The pings that cross it, in either direction."""
    others: tuple[str, ...] = ()
    """The directions, `LINK.SIDE`, of other ports that are the bottleneck of some traffic."""

    @property
    def rate_bps(self) -> int:
        """The port's highest rate."""
        rates = [step.bits_per_second for step in self.port.rate]
        return max([*rates, self.port.boost.rate_bps] if self.port.boost else rates)

    @property
    def held_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps * self.round_trip_ns / 8e9

    @property
    def key(self) -> str:
        """The path of its queue in an experiment file."""
        return f"link.{self.port.link}.{self.side}.queue"


def find(scenario: Scenario, link: str | None = None) -> Bottleneck:
    """The port with the smallest rate at which data waits; with `link` (`NAME` or `NAME.SIDE`), the one on that link.

    Raises `InputError`, with the reason, if there is no such port.
    """
    carrying = list(_carrying(scenario))
    if not carrying:
        raise InputError(f"no queue can fill: the experiment has no traffic that carries data ({', '.join(CARRYING)})")
    if link is not None:
        return _on(scenario, carrying, link)
    slowest = [_slowest(scenario, entry) for entry in carrying]
    found = list(dict.fromkeys(port.name for port in slowest if port))
    if not found:
        raise InputError("no queue can build up: no link on the path of the data has a rate; set one with --set")
    known = ports(scenario)
    first = min(found, key=lambda name: _lowest(known[name]))
    others = tuple(f"{known[name].link}.{_side(scenario, known[name])}" for name in found if name != first)
    return _bottleneck(scenario, carrying, known[first], others)


def _on(scenario: Scenario, carrying: list[Traffic], wanted: str) -> Bottleneck:
    name, dot, side = wanted.partition(".")
    names = [link["name"] for link in scenario["links"]]
    if name not in names:
        raise InputError(f"--link: found {name!r}; allowed: {', '.join(names)}{closest(name, names)}")
    if dot and side not in SIDES:
        raise InputError(
            f"--link: found {wanted!r}; allowed: {name}, or with a direction, {name}.{f' or {name}.'.join(SIDES)}"
        )
    own = [port for port in ports(scenario).values() if port.link == name]
    if dot:
        own = [own[SIDES.index(side)]]
    rated = [port for port in own if port.rate]
    if not rated:
        raise InputError(
            f"--link {wanted}: it has no rate, so no queue can build up; set one with --set link.{name}.rate=..."
        )
    crossed = [port for port in rated if any(port in _way(scenario, entry) for entry in carrying)]
    if not crossed:
        raise InputError(f"--link {wanted}: no traffic that carries data crosses it")
    return _bottleneck(scenario, carrying, min(crossed, key=_lowest), ())


def _bottleneck(scenario: Scenario, carrying: list[Traffic], port: Port, others: tuple[str, ...]) -> Bottleneck:
    across = [entry for entry in carrying if port in _way(scenario, entry)]
    sender, receiver = traffic_ends(scenario, across[0])
    round_trip_ns = max(sum(each.delay_ns for each in _both_ways(scenario, entry)) for entry in across)
    carried = tuple(entry["name"] for entry in across)
    elsewhere = tuple(entry["name"] for entry in carrying if entry not in across)
    crossing = tuple(entry["name"] for entry in probers(scenario) if crosses(scenario, entry, port))
    return Bottleneck(
        port, _side(scenario, port), sender, receiver, round_trip_ns, carried, elsewhere, crossing, others
    )


def crosses(scenario: Scenario, entry: Traffic, port: Port) -> bool:
    """Whether the packets of a traffic entry cross a port, in either direction of the traffic."""
    return port in _both_ways(scenario, entry)


def _carrying(scenario: Scenario) -> Iterator[Traffic]:
    return (entry for entry in traffic_named(scenario, *CARRYING) if entry.get("flows", 1))


def _way(scenario: Scenario, entry: Traffic) -> list[Port]:
    """The ports that an entry's data crosses."""
    return path(scenario, *traffic_ends(scenario, entry))


def _both_ways(scenario: Scenario, entry: Traffic) -> list[Port]:
    near, far = traffic_ends(scenario, entry)
    return [*path(scenario, near, far), *path(scenario, far, near)]


def _slowest(scenario: Scenario, entry: Traffic) -> Port | None:
    """The first of the slowest ports on an entry's way; None if none has a rate."""
    return min((port for port in _way(scenario, entry) if port.rate), key=_lowest, default=None)


def _lowest(port: Port) -> int:
    return min(step.bits_per_second for step in port.rate)


def _side(scenario: Scenario, port: Port) -> Side:
    """The direction of its link that a port sends in."""
    return SIDES[[each.name for each in ports(scenario).values() if each.link == port.link].index(port.name)]
