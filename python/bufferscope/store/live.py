"""What `run.json` says of a live measurement, in the key `live` of its summary: how it went, and its verdict.

The tables have the samples. What has no column there is here, so that `bufferscope.interop.live` can put together again
what was observed: which echoes were lost on their way to the server, and how busy the processors were.
"""

from collections.abc import Mapping
from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from bufferscope.store.typed import Count, Series, check_of
from bufferscope.store.verdict import Direction, EndName, Episode, LiveVerdict, MonitorSummary, PhaseKind

ECHOES = "udp"
HANDSHAKES = "connect/any"
LOADED: tuple[PhaseKind, ...] = ("download", "upload", "both")
"""The phases with a load."""
OVER_TCP = "client_tcp"
"""The ladder of the client's SYNs in the table `hops`."""


class PathEnd(TypedDict, total=False):
    """One end of the path."""

    link: str
    link_bps: int | None
    expected_wifi_bps: int | None
    qdisc: str | None
    ring_packets: int | None
    bql: bool | None
    software_stamps: bool
    hops_to_other: int | None
    unknown: list[str]
    """What this end could not find out."""


class PathEnds(TypedDict):
    """Both ends of the path."""

    client: PathEnd
    server: PathEnd


class PhaseSummary(TypedDict):
    """A part of the measurement; times count from the run's time 0."""

    kind: PhaseKind
    start_ns: int
    end_ns: int
    levelled: bool | None
    """Whether goodput and delay had levelled off at its end; null: not checked."""
    load_failure: NotRequired[str]
    """Why its load failed."""
    lost_up: NotRequired[Series]
    """The echoes that did not reach the server, by their `seq`: `12-40 57`."""
    processors: NotRequired[dict[str, Series]]
    """How busy each end's processors were: `t_ns/busiest/softirq` for each sample, shares from 0 to 1."""


MOST_FLOODS = 2
"""One in each direction."""
MOST_COUNTS = 20_000
"""The most echoes, and the most counts, of a flood."""


class Flood(TypedDict):
    """UDP packets whose rate grew beyond that of the path; times count from the run's time 0."""

    direction: Direction
    peak_bps: Count
    """The highest rate, headers included."""
    start_ns: int
    end_ns: int
    sent_packets: Count
    received_packets: Count
    rtts: Annotated[list[list[int | None]], Meta(max_length=MOST_COUNTS)]
    """The echoes in the meantime: when each was sent, and its round trip (null: no reply came)."""
    received: Annotated[list[list[int]], Meta(max_length=MOST_COUNTS)]
    """Times, and the bytes that had arrived by then."""


class EndProgram(TypedDict, total=False):
    """The program at one end."""

    version: str
    kernel: str


class Accuracy(TypedDict, total=False):
    """How exact the times are."""

    rx_stamps: str | None
    timing_error_p99_ns: int | None


class LiveMeasurement(TypedDict):
    """A live measurement."""

    host: str
    address: str
    client: EndProgram
    server: EndProgram
    complete: bool
    reason: str | None
    """Why it is not complete."""
    parameters: dict[str, object]
    ends: PathEnds
    phases: list[PhaseSummary]
    floods: NotRequired[Annotated[list[Flood], Meta(max_length=MOST_FLOODS)]]
    """Only with `measure --flood`."""
    accuracy: Accuracy
    verdict: LiveVerdict
    monitor: NotRequired[MonitorSummary]
    """Only if the connection was watched (`measure --continuous`): the numbers, and then what happened."""
    episodes: NotRequired[list[Episode]]


LIVE = check_of(LiveMeasurement)
"""The check of this part of `run.json`."""


def live_of(summary: Mapping[str, object]) -> LiveMeasurement | None:
    """What a run's summary says of a live measurement; None for every other run."""
    found: LiveMeasurement | None = summary.get("live")  # type: ignore[assignment]
    return found


def path_probe(live: LiveMeasurement) -> str:
    """The probe of the whole path: echoes, or new connections if the server is not one of bufferscope."""
    return HANDSHAKES if "protocol" in live["parameters"] else ECHOES


def ends(live: LiveMeasurement) -> dict[EndName, PathEnd]:
    """The two ends by their names."""
    return {"client": live["ends"]["client"], "server": live["ends"]["server"]}
