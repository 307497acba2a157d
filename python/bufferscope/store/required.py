"""What the scenario of a `run.json` must have: the keys that metrics, figures, pages and commands rely on.

`model.scenario` has the types of the scenarios that the native core writes. A run of another program may have less.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

from bufferscope import _core
from bufferscope.base.bounded import Name, Positive, Whole, matching

TableKey = Annotated[str, matching("|".join(_core.TABLES), f"one of {', '.join(_core.TABLES)}")]
"""The name of a table."""


class Empty(TypedDict):
    """Any table."""


class RequiredByteLimits(TypedDict):
    """Byte queue limits."""

    hold_ns: Whole
    min_bytes: Whole
    max_bytes: Whole


class RequiredRing(TypedDict):
    """A driver's transmit ring."""

    size_packets: Positive
    bql: NotRequired[RequiredByteLimits | None]


class RequiredBoost(TypedDict):
    """A higher rate until a bucket of tokens is empty."""

    rate_bps: Positive
    bytes: Positive


class RequiredOutages(TypedDict):
    """Times without a rate."""

    every_ns: Positive
    lasts_ns: Positive


class RequiredWalk(TypedDict):
    """A rate that is a random walk."""

    mean_bps: Positive
    deviation_bps: Positive
    coherence_ns: Positive
    every_ns: Positive
    max_bps: Positive
    preset: NotRequired[str | None]
    outages: NotRequired[RequiredOutages | None]


class RequiredTrace(TypedDict):
    """Delivery opportunities."""

    file: str
    opportunities: str


class RequiredVariation(TypedDict, total=False):
    """How a rate varies by itself."""

    trace: RequiredTrace | None
    walk: RequiredWalk | None


class RequiredStep(TypedDict):
    """A step of a wire's rate."""

    from_ns: Whole
    bits_per_second: Positive


class RequiredQdisc(TypedDict):
    """A queueing discipline."""

    qdisc: str
    limit_packets: NotRequired[Whole | None]


class RequiredPort(TypedDict):
    """The sending side of one direction of a link."""

    rate: Annotated[list[RequiredStep], Meta(min_length=1)] | None
    delay_ns: Whole
    overhead_bytes: Whole
    queue: RequiredQdisc
    mpu_bytes: NotRequired[Whole | None]
    cells: NotRequired[str | None]
    ring: NotRequired[RequiredRing | None]
    boost: NotRequired[RequiredBoost | None]
    variation: NotRequired[RequiredVariation | None]
    faults: NotRequired[object]


class RequiredLink(TypedDict):
    """A link between two nodes."""

    name: Name
    ends: Annotated[list[Whole], Meta(min_length=2, max_length=2)]
    forward: RequiredPort
    reverse: RequiredPort


class RequiredNode(TypedDict):
    """A host or router."""

    name: Name
    tcp: Empty


class RequiredStation(TypedDict):
    """A station of a Wi-Fi network."""

    link: Whole


class RequiredFifo(TypedDict):
    """A driver's buffer for all stations."""

    size_packets: Whole


class RequiredMac80211(TypedDict):
    """Queues for each station."""

    airtime_fairness: bool


class RequiredQueueing(TypedDict):
    """The queues of a Wi-Fi network."""

    kind: Literal["fifo", "mac80211"]


QUEUEING: Mapping[str, type] = {"fifo": RequiredFifo, "mac80211": RequiredMac80211}
"""What each kind of queueing must have besides."""


class RequiredWifi(TypedDict):
    """An access point and its stations."""

    name: Name
    access_point: Whole
    stations: Annotated[list[RequiredStation], Meta(min_length=1)]
    queueing: RequiredQueueing


_Ends = TypedDict("_Ends", {"from": Whole, "to": Whole})


class RequiredTraffic(_Ends):
    """A traffic entry."""

    name: Name
    kind: str
    start_ns: Whole
    stop_ns: Whole
    transfers: NotRequired[Whole | None]


class RequiredFlows(TypedDict):
    """Traffic of flows."""

    flows: Whole


class RequiredPackets(TypedDict):
    """Traffic of packets that have a payload."""

    payload_bytes: Positive


class RequiredEchoes(TypedDict):
    """Traffic of packets that may have a payload."""

    payload_bytes: Whole


class RequiredTicks(TypedDict):
    """Traffic of packets that are late after some time."""

    late_ns: Whole


class RequiredSegments(TypedDict):
    """Traffic of segments that are played."""

    segment_ns: Positive
    startup_ns: Whole
    resume_ns: Whole


TRAFFIC: Mapping[str, type] = {
    "tcp": RequiredFlows,
    "udp": RequiredPackets,
    "ping": RequiredEchoes,
    "irtt": RequiredEchoes,
    "game": RequiredTicks,
    "video": RequiredSegments,
    "netalyzr": RequiredPackets,
}
"""What the metrics and findings of each kind of traffic need besides; other kinds need nothing else."""


class RequiredScenario(TypedDict):
    """A network with its traffic."""

    duration_ns: Positive
    warmup_ns: Whole
    sample_interval_ns: Positive
    nodes: Annotated[list[RequiredNode], Meta(min_length=1)]
    links: list[RequiredLink]
    traffic: list[RequiredTraffic]
    flows_interval_ns: NotRequired[Positive]
    record: NotRequired[list[TableKey]]
    wifi: NotRequired[list[RequiredWifi]]
