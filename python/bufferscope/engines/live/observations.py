"""What a live measurement observed, as the program reports it and as the verdict takes it.

Times are integer nanoseconds on the client's clock, with any origin; those of the server are mapped to it. Sizes are
bytes, rates bit/s. What is missing is not known.
"""

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

from bufferscope.store.live import MOST_FLOODS, Flood, PathEnds
from bufferscope.store.typed import Count
from bufferscope.store.verdict import Direction, EndName, PhaseKind

MOST_SAMPLES = 2_000_000
"""The most samples of a kind in a phase."""
MOST_PHASES = 10_000
"""A connection that is watched has one for each stretch between two gaps."""
Answer = Literal["exceeded", "echo", "unreachable", "destination", "modem"]
Stage = Literal["send_buffer", "qdisc", "driver"]
TcpKind = Literal["connect", "tls", "exchange", "self"]


class Echo(TypedDict):
    """A UDP echo."""

    t_ns: int
    rtt_ns: NotRequired[Count | None]
    up_ns: NotRequired[int | None]
    down_ns: NotRequired[int | None]
    lost: NotRequired[Literal["up", "down", "unknown"] | None]


class TcpProbe(TypedDict):
    """A probe over TCP."""

    t_ns: int
    kind: TcpKind
    direction: NotRequired[Direction | None]
    rtt_ns: NotRequired[Count | None]


class LadderProbe(TypedDict):
    """A probe with a limited TTL."""

    t_ns: int
    end: EndName
    ttl: Count
    address: NotRequired[str | None]
    rtt_ns: NotRequired[Count | None]
    kind: Answer
    mpls: NotRequired[bool]


class StageDelay(TypedDict):
    """A delay in one of the ends."""

    t_ns: int
    end: EndName
    stage: Stage
    delay_ns: Count


class FlowSample(TypedDict):
    """A connection of the load at its sender."""

    t_ns: int
    direction: Direction
    flow: Count
    srtt_ns: NotRequired[Count]
    min_rtt_ns: NotRequired[Count]
    cwnd_bytes: NotRequired[Count]
    notsent_bytes: NotRequired[Count]
    retransmits: NotRequired[Count]
    delivered_bytes: NotRequired[Count]
    busy_us: NotRequired[Count]
    rwnd_limited_us: NotRequired[Count]
    sndbuf_limited_us: NotRequired[Count]
    delivered_ce: NotRequired[Count]


class GoodputSample(TypedDict):
    """What a receiver of the load has received."""

    t_ns: int
    direction: Direction
    bytes: Count


class LocalSample(TypedDict):
    """The state of an end."""

    t_ns: int
    end: EndName
    qdisc_bytes: NotRequired[Count | None]
    qdisc_drops: NotRequired[Count | None]
    ring_bytes: NotRequired[Count | None]
    cpu_busy: NotRequired[float | None]
    softirq: NotRequired[float | None]


class ObservedPhase(TypedDict):
    """One phase and what was observed in it."""

    kind: PhaseKind
    start_ns: int
    end_ns: int
    levelled: NotRequired[bool | None]
    load_failure: NotRequired[str | None]
    echoes: NotRequired[Annotated[list[Echo], Meta(max_length=MOST_SAMPLES)]]
    tcp_probes: NotRequired[Annotated[list[TcpProbe], Meta(max_length=MOST_SAMPLES)]]
    ladder: NotRequired[Annotated[list[LadderProbe], Meta(max_length=MOST_SAMPLES)]]
    tcp_ladder: NotRequired[Annotated[list[LadderProbe], Meta(max_length=MOST_SAMPLES)]]
    """SYNs of TCP with a limited TTL, from the client."""
    stages: NotRequired[Annotated[list[StageDelay], Meta(max_length=MOST_SAMPLES)]]
    flows: NotRequired[Annotated[list[FlowSample], Meta(max_length=MOST_SAMPLES)]]
    goodput: NotRequired[Annotated[list[GoodputSample], Meta(max_length=MOST_SAMPLES)]]
    local: NotRequired[Annotated[list[LocalSample], Meta(max_length=MOST_SAMPLES)]]


class Observations(TypedDict):
    """Everything that was observed."""

    phases: Annotated[list[ObservedPhase], Meta(max_length=MOST_PHASES)]
    floods: NotRequired[Annotated[list[Flood], Meta(max_length=MOST_FLOODS)]]
    ends: PathEnds
    parameters: NotRequired[dict[str, object]]
