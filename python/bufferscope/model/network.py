"""A scenario's network in the form that metrics and figures need: ports by name, their settings, and paths."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal, overload

from bufferscope import _core
from bufferscope.model.directions import SIDES
from bufferscope.model.scenario import (
    Faults,
    IrttTraffic,
    NetalyzrTraffic,
    PingTraffic,
    PortSettings,
    Qdisc,
    RateVariation,
    Scenario,
    TcpTraffic,
    Traffic,
    UdpTraffic,
    VideoTraffic,
    WebTraffic,
)

if TYPE_CHECKING:
    import polars as pl

NANOSECONDS = 1_000_000_000
UNKNOWN = "unknown"
"""The queueing discipline of a port that is not known, as in a run that another program observed."""
OVER_TCP = ("tcp", "web", "bittorrent", "video")
"""The kinds of traffic over TCP."""
CARRYING = (*OVER_TCP, "udp")
"""The kinds of traffic that carry data: they have a goodput, and can fill a queue."""


@dataclass(frozen=True)
class PortRateStep:
    """A step of the rate that the experiment asks for: from `from_ns` on, `bits_per_second`."""

    from_ns: int
    bits_per_second: int


@dataclass(frozen=True)
class PortBoost:
    """A higher rate until a bucket of tokens is empty, which fills at the port's rate."""

    rate_bps: int
    bytes: int


@dataclass(frozen=True)
class Encapsulation:
    """What a link makes of the length of a packet: bytes that it adds, the shortest packet, and cells by tc's word."""

    overhead_bytes: int
    mpu_bytes: int = 0
    cells: str = "noatm"

    def frame_bytes(self, ip_bytes: int) -> int:
        """The length of an IP packet on the link, as `Encapsulation::frame_bytes` of the scenario crate has it."""
        least = max(ip_bytes + self.overhead_bytes, self.mpu_bytes)
        match self.cells:
            case "atm":
                return ceil(least / 48) * 53
            case "ptm":
                return least + ceil(least / 64)
            case _:
                return least


@dataclass(frozen=True)
class Port:
    """One direction of a link, named after the nodes that it joins: `r1>h2`."""

    name: str
    sender: str
    receiver: str
    link: str
    rate: tuple[PortRateStep, ...]
    """Steps in order of time, the first at 0; if empty, the port has no rate, and nothing queues in it."""
    delay_ns: int
    link_layer: Encapsulation
    queue: Qdisc
    boost: PortBoost | None = None
    faults: Faults | None = None
    variation: str | None = None
    """How the rate varies by itself, in a few words; `rate` is then the mean."""

    @property
    def is_unknown(self) -> bool:
        """Whether the port is not known: then its rate, its delay and its queue mean nothing."""
        return self.queue["qdisc"] == UNKNOWN

    @property
    def limit_packets(self) -> int | None:
        """The queue's limit if it is in packets, otherwise None."""
        limit = self.queue.get("limit_packets")
        return limit if isinstance(limit, int) else None

    @property
    def limit_bytes(self) -> int | None:
        """The queue's limit if it is in bytes, otherwise None."""
        limit = self.queue.get("limit_bytes")
        return limit if isinstance(limit, int) else None


def ports(scenario: Scenario) -> dict[str, Port]:
    """All ports by name, in the order of the file's links, forward before reverse."""
    names = [node["name"] for node in scenario["nodes"]]
    found: dict[str, Port] = {}
    for link in scenario["links"]:
        a, b = (names[index] for index in link["ends"])
        for side, sender, receiver in zip(SIDES, (a, b), (b, a), strict=True):
            port = _port(sender, receiver, link["name"], link[side])
            found[port.name] = port
    return found


def path(scenario: Scenario, sender: str, receiver: str) -> list[Port]:
    """The ports that a packet crosses from one node to another, as the engines route."""
    names = [node["name"] for node in scenario["nodes"]]
    links = [link["ends"] for link in scenario["links"]]
    crossed = _core.path(len(names), links, names.index(sender), names.index(receiver))
    if crossed is None:
        raise ValueError(f"no links lead from {sender} to {receiver}")
    found = tuple(ports(scenario).values())
    return [found[port] for port in crossed]


@overload
def traffic_named(scenario: Scenario, kind: Literal["tcp"], /) -> list[TcpTraffic]: ...
@overload
def traffic_named(scenario: Scenario, kind: Literal["web"], /) -> list[WebTraffic]: ...
@overload
def traffic_named(scenario: Scenario, kind: Literal["video"], /) -> list[VideoTraffic]: ...
@overload
def traffic_named(scenario: Scenario, kind: Literal["udp"], /) -> list[UdpTraffic]: ...
@overload
def traffic_named(scenario: Scenario, kind: Literal["ping"], /) -> list[PingTraffic]: ...
@overload
def traffic_named(scenario: Scenario, kind: Literal["netalyzr"], /) -> list[NetalyzrTraffic]: ...
@overload
def traffic_named(scenario: Scenario, *kinds: str) -> list[Traffic]: ...
def traffic_named(scenario: Scenario, *kinds: str) -> Sequence[Traffic]:
    """The scenario's traffic entries of these kinds, or all entries if no kind is given; in the file's order."""
    return [entry for entry in scenario["traffic"] if not kinds or entry["kind"] in kinds]


def probers(scenario: Scenario) -> list[PingTraffic | IrttTraffic]:
    """The traffic that measures round trips, in the file's order."""
    return [entry for entry in scenario["traffic"] if entry["kind"] == "ping" or entry["kind"] == "irtt"]


def groups(scenario: Scenario, *kinds: str) -> dict[str, list[str]]:
    """The traffic of these kinds (or of any kind) that belongs together: names of the parts by the name of the group.

    An entry may stand for several parts, such as `rrul.up.be` and `rrul.up.ef`; these two are of the groups `rrul.up`
    and `rrul`. A group of one part has no name of its own.
    """
    found: dict[str, list[str]] = {}
    for entry in traffic_named(scenario, *kinds):
        words = entry["name"].split(".")
        for length in range(1, len(words)):
            found.setdefault(".".join(words[:length]), []).append(entry["name"])
    return {group: parts for group, parts in found.items() if len(parts) > 1}


def bulk_flows(scenario: Scenario) -> int:
    """The number of competing flows of kind tcp."""
    return sum(entry["flows"] for entry in traffic_named(scenario, "tcp"))


def traffic_ends(scenario: Scenario, entry: Traffic) -> tuple[str, str]:
    """The names of the nodes that a traffic entry goes from and to."""
    return scenario["nodes"][entry["from"]]["name"], scenario["nodes"][entry["to"]]["name"]


def traffic_of_flow() -> "pl.Expr":
    """The traffic that a flow belongs to: `web` for `web/17`."""
    import polars as pl

    return pl.col("flow").str.replace(r"/\d+$", "").alias("traffic")


def _variation(variation: RateVariation) -> str:
    """`umts-down`, `a random walk`, or the name of a trace's file."""
    if "trace" in variation:
        return variation["trace"]["file"]
    return variation["walk"].get("preset", "a random walk")


def _port(sender: str, receiver: str, link: str, side: PortSettings) -> Port:
    return Port(
        name=f"{sender}>{receiver}",
        sender=sender,
        receiver=receiver,
        link=link,
        rate=tuple(PortRateStep(step["from_ns"], step["bits_per_second"]) for step in side["rate"] or ()),
        delay_ns=side["delay_ns"],
        link_layer=Encapsulation(side["overhead_bytes"], side.get("mpu_bytes", 0), side.get("cells", "noatm")),
        queue=side["queue"],
        faults=side.get("faults"),
        boost=PortBoost(**side["boost"]) if "boost" in side else None,
        variation=_variation(side["variation"]) if "variation" in side else None,
    )
