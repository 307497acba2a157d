"""The resolved scenario: a network with its traffic, every default filled in, every value in the unit of its name.

These are the types of the JSON that the native core writes; `crates/scenario/src/model.rs` explains every key. They
check nothing at run time: of a scenario that comes with a run of unknown origin, only what `store.metadata` checks is
certain.
"""

import hashlib
import json
from typing import Literal, NotRequired, TypedDict, get_args

LARGEST_SEED = 2**63 - 1

Side = Literal["forward", "reverse"]
"""A direction of a link; its name is also the key of its port."""
SIDES: tuple[Side, ...] = get_args(Side)

CongestionControl = Literal[
    "reno", "cubic", "vegas", "westwood", "window", "ledbat", "ledbat++", "bbr", "bbr3", "dctcp", "prague"
]
Pattern = Literal["constant", "poisson"]
"""How things that are sent follow one another."""

Table = Literal[
    "probes",
    "flows",
    "queues",
    "drops",
    "transfers",
    "sojourns",
    "capacity",
    "estimates",
]
"""A table of the records."""


class Qdisc(TypedDict):
    """A queueing discipline; its other parameters are further keys, which only the engines read."""

    qdisc: str
    """One of `_core.QDISCS`."""
    limit_packets: NotRequired[int]
    limit_bytes: NotRequired[int]


class TcpSettings(TypedDict):
    """Settings of a host's TCP, named after Linux' sysctls."""

    rmem_max_bytes: int
    rmem_default_bytes: int
    wmem_max_bytes: int
    wmem_default_bytes: int
    notsent_lowat_bytes: int | None
    initial_window_packets: int
    gso_max_segs: int
    min_tso_segs: int
    slow_start_after_idle: bool
    remember_ssthresh: bool
    syn_linear_timeouts: int
    pacing_percent: list[int]


class Node(TypedDict):
    """A host or router."""

    name: str
    tcp: TcpSettings


class RateStep(TypedDict):
    """A step of a wire's rate."""

    from_ns: int
    bits_per_second: int


class ByteLimits(TypedDict):
    """Byte queue limits, with their parameters in sysfs."""

    hold_ns: int
    min_bytes: int
    max_bytes: int


class Completion(TypedDict, total=False):
    """When a device reports packets as sent: one of these."""

    packets: int
    """When there are so many, or when it has nothing left to send."""
    after_ns: int
    """This time after the first of them was sent."""


class Ring(TypedDict):
    """A driver's transmit ring."""

    size_packets: int
    bql: NotRequired[ByteLimits]
    """Without it, only the size bounds what is in the ring."""
    completion: NotRequired[Completion]
    """Without it, each packet at once."""
    accounting: NotRequired[Literal["virtio"]]
    """Without it, each packet occupies one slot."""


class Boost(TypedDict):
    """A higher rate until a bucket of tokens is empty."""

    rate_bps: int
    bytes: int


class Outages(TypedDict):
    """Times without a rate; both times are means."""

    every_ns: int
    lasts_ns: int


class Walk(TypedDict):
    """A rate that is a random walk."""

    preset: NotRequired[str]
    mean_bps: int
    deviation_bps: int
    coherence_ns: int
    every_ns: int
    max_bps: int
    outages: NotRequired[Outages]


class Trace(TypedDict):
    """Delivery opportunities."""

    file: str
    opportunities: str


class RateVariation(TypedDict):
    """How a rate varies by itself: it has one of these keys."""

    trace: NotRequired[Trace]
    walk: NotRequired[Walk]


class Faults(TypedDict):
    """What a wire does to packets besides sending and delaying them."""

    loss: dict[str, list[float]] | None
    jitter_ns: int
    correlation: float
    distribution: str
    keep_order: bool
    reorder: dict[str, float] | None


class PortSettings(TypedDict):
    """The sending side of one direction of a link: queueing discipline, ring, then wire."""

    rate: list[RateStep] | None
    """Steps in order of time, the first at 0; without a rate, nothing queues."""
    delay_ns: int
    overhead_bytes: int
    mpu_bytes: NotRequired[int]
    cells: NotRequired[str]
    """`atm` or `ptm`."""
    queue: Qdisc
    ring: NotRequired[Ring]
    boost: NotRequired[Boost]
    faults: NotRequired[Faults]
    variation: NotRequired[RateVariation]
    """Then `rate` is constant: the mean."""
    stacked: NotRequired[Qdisc]
    """The discipline of an interface on top of this one."""


class Link(TypedDict):
    """A link between two nodes, with a port for each direction."""

    name: str
    ends: list[int]
    """The indices of its two nodes."""
    forward: PortSettings
    reverse: PortSettings


class Station(TypedDict):
    """A station of a Wi-Fi network."""

    link: int
    """The index of its link to the access point."""
    error_rate: float
    """The probability that a frame is lost."""


class FifoQueueing(TypedDict):
    """A driver's buffer for all stations, below one queueing discipline."""

    kind: Literal["fifo"]
    size_packets: int


class Mac80211Queueing(TypedDict):
    """Queues for each station."""

    kind: Literal["mac80211"]
    airtime_fairness: bool


class Aggregate(TypedDict):
    """How much is sent at once."""

    frames: int
    bytes: int
    time_ns: int


class Wifi(TypedDict):
    """An access point and its stations, which share a channel."""

    name: str
    access_point: int
    """The index of a node."""
    stations: list[Station]
    queueing: FifoQueueing | Mac80211Queueing
    aggregate: Aggregate
    retries: int


class OnOff(TypedDict):
    """The periods of traffic that is on and off alternately."""

    on_ns: int
    off_ns: int
    periods: Literal["fixed", "exponential"]


ENDS: tuple[Literal["from", "to"], ...] = ("from", "to")
"""The keys of traffic that hold the indices of its nodes."""
_Common = TypedDict(
    "_Common",
    {"name": str, "from": int, "to": int, "start_ns": int, "stop_ns": int, "dscp": NotRequired[int]},
)
"""What all traffic has."""


class _Served(_Common):
    """Traffic with a server."""

    port: NotRequired[int]
    """The server's port, where the file gives one."""


class _Sending(TypedDict):
    """How the data of a TCP connection is sent."""

    congestion: CongestionControl
    window_packets: int | None
    target_ns: int | None
    ecn: bool
    pacing: bool


class TcpTraffic(_Served, _Sending):
    """TCP connections that send data."""

    kind: Literal["tcp"]
    flows: int
    stagger_ns: NotRequired[int]
    bytes: int | None
    """The size of a transfer; None: as much as fits."""
    transfers: NotRequired[int]
    """Transfers that each flow makes one after the other, if more than one."""
    rate_bps: NotRequired[int]
    on_off: NotRequired[OnOff]


class PingTraffic(_Common):
    """ICMP echo requests."""

    kind: Literal["ping"]
    interval_ns: int
    payload_bytes: int
    timeout_ns: int
    timing: NotRequired[Literal["iputils"]]
    """When requests are sent, if not exactly at each interval."""


class PageObjects(TypedDict):
    """The objects that a page refers to."""

    count: int
    bytes: int
    connections: int


class WebTraffic(_Served, _Sending):
    """Pages fetched at an interval."""

    kind: Literal["web"]
    interval_ns: int
    bytes: int
    request_bytes: int
    objects: NotRequired[PageObjects]


class UdpTraffic(_Served):
    """Datagrams sent at a rate."""

    kind: Literal["udp"]
    flows: int
    rate_bps: int
    payload_bytes: int
    pattern: Pattern
    on_off: OnOff | None


class VoipTraffic(_Served):
    """A telephone call."""

    kind: Literal["voip"]
    both_ways: bool


class DnsTraffic(_Served):
    """Look-ups of names."""

    kind: Literal["dns"]
    interval_ns: int
    pattern: Pattern
    request_bytes: int
    response_bytes: int
    timeout_ns: int
    attempts: int


class BittorrentTraffic(_Served, _Sending):
    """A seed of a torrent and its peers."""

    kind: Literal["bittorrent"]
    peers: int
    unchoked: int


class IrttTraffic(_Served):
    """Round trips over UDP."""

    kind: Literal["irtt"]
    interval_ns: int
    payload_bytes: int
    timeout_ns: int


class GameTraffic(_Served):
    """An online game."""

    kind: Literal["game"]
    tick_ns: int
    command_bytes: int
    update_bytes: int
    late_ns: int


class NetalyzrTraffic(_Served):
    """A test of the path's buffers."""

    kind: Literal["netalyzr"]
    probes: int
    interval_ns: int
    load_ns: int
    pause_ns: int
    payload_bytes: int
    rate_bps: int


Traffic = (
    TcpTraffic
    | PingTraffic
    | WebTraffic
    | UdpTraffic
    | VoipTraffic
    | DnsTraffic
    | BittorrentTraffic
    | IrttTraffic
    | GameTraffic
    | NetalyzrTraffic
)
"""An entry of the file's `[[traffic]]`, or a part of one: then a dot follows the name of the entry."""


class Scenario(TypedDict):
    """A network with its traffic: what an engine runs."""

    duration_ns: int
    warmup_ns: int
    sample_interval_ns: int
    """Between two samples of queues, and of flows unless `flows_interval_ns` says otherwise."""
    flows_interval_ns: NotRequired[int]
    record: NotRequired[list[Table]]
    """The tables that are recorded, if not all."""
    sojourns: Literal["histogram", "packets"]
    nodes: list[Node]
    links: list[Link]
    wifi: NotRequired[list[Wifi]]
    traffic: list[Traffic]


def scenario_digest(scenario: Scenario) -> str:
    """A string that is the same for equal scenarios."""
    return hashlib.sha256(json.dumps(scenario, sort_keys=True).encode()).hexdigest()
