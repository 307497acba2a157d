"""The verdict of a live measurement, as `run.json` has it: what the crate `verdict` returns.

Delays are integer nanoseconds, rates bit/s, sizes bytes, probabilities and shares from 0 to 1. A number that is not
known is null.
"""

from typing import Literal, NotRequired, TypedDict

from bufferscope.store.typed import Count

PhaseKind = Literal["idle", "download", "upload", "both", "cool_down"]
Direction = Literal["up", "down"]
EndName = Literal["client", "server"]
Grade = Literal["A+", "A", "B", "C", "D", "F"]
OutcomeKind = Literal["queue", "managed", "not_filled", "other_traffic", "path_changed", "clean", "cannot_tell"]
Place = Literal[
    "client_send_buffer",
    "client_qdisc",
    "client_driver",
    "router_uplink",
    "router_downlink",
    "access_downlink",
    "modem",
    "hop",
    "last_hop",
    "server_driver",
    "server_qdisc",
    "server_send_buffer",
]


class Spread(TypedDict):
    """A distribution of delays; lost probes count as infinitely long."""

    count: Count
    lost: Count
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    """The longest delay of a probe that was not lost."""
    censored: bool
    """Whether a percentile is missing because it falls among the lost probes."""


class Idle(TypedDict):
    """The idle path."""

    rtt: Spread
    mad_ns: int | None
    queue_ns: int | None
    drift_ppm: float | None
    drift_error_ns: int | None


class Goodput(TypedDict):
    """Goodput at the receiver."""

    mean_bps: Count
    p10_bps: int | None
    variation: float | None


class Buffer(TypedDict):
    """The part of a buffer that the load keeps filled."""

    delay_ns: int
    bytes: int | None
    header_factor: float


class Load(TypedDict):
    """What the load's own connections in one direction say."""

    flows: Count
    rtt_rise_ns: int | None
    retransmits: float | None
    marks: float | None
    rwnd_limited: float | None
    sndbuf_limited: float | None
    busy: float | None


class DirectionNumbers(TypedDict):
    """The numbers of one direction in one loaded phase."""

    direction: Direction
    loaded: bool
    added: Spread
    loss: float | None
    threshold_ns: int | None
    rises: bool
    fill_ns: int | None
    goodput: Goodput | None
    buffer: Buffer | None
    load: Load | None


class Numbers(TypedDict):
    """The numbers of one loaded phase."""

    idle_p50_ns: int | None
    loaded: Spread
    added: Spread
    threshold_ns: int | None
    directions: list[DirectionNumbers]
    levelled: bool | None


class PhaseOutcome(TypedDict):
    """What happened in a loaded phase."""

    kind: OutcomeKind
    limit: str | None
    text: str


class Location(TypedDict):
    """Where packets may wait."""

    place: Place
    direction: Direction
    link: Count
    """The link that the queue sends onto, counted from the client."""
    address: str | None


class Candidate(TypedDict):
    """A location and its probability."""

    location: Location
    probability: float


class Answer(TypedDict):
    """The smallest set of adjacent locations with a probability of at least 90 %."""

    text: str
    locations: list[Location]
    probability: float
    share: float


class Where(TypedDict):
    """In which queue the delay of one direction is."""

    direction: Direction
    posterior: list[Candidate]
    """All candidates in the order of the path from the client."""
    answer: Answer
    second: Answer | None
    """A second queue, if there is one."""


class Hop(TypedDict):
    """One hop of a ladder in a loaded phase."""

    end: EndName
    ttl: Count
    address: str | None
    idle_count: Count
    loaded_count: Count
    idle_p50_ns: int | None
    rise_ns: int | None
    used: bool
    note: str | None


class StageNumbers(TypedDict):
    """Delays in a stage of an end."""

    end: EndName
    stage: str
    delay: Spread


class RpmParameters(TypedDict):
    """The parameters of responsiveness, by their names in the draft."""

    mad: Count
    id_ns: int
    tmp: float
    sdt: float


class Rpm(TypedDict):
    """Responsiveness (draft-ietf-ippm-responsiveness) without TLS."""

    rpm: float | None
    foreign: float | None
    own: float | None
    confidence: str | None
    reason: str | None
    parameters: RpmParameters


class PhaseVerdict(TypedDict):
    """The verdict about one loaded phase."""

    kind: PhaseKind
    start_ns: int
    numbers: Numbers
    outcome: PhaseOutcome
    where: list[Where]
    """One entry per direction with a queue; empty unless the outcome is `queue`."""
    hops: list[Hop]
    stages: list[StageNumbers]
    grade: Grade | None
    rpm: Rpm


class GradeStep(TypedDict):
    """One line of the table of grades."""

    grade: Grade
    below_ns: int | None


class GradeTable(TypedDict):
    """How grades are given."""

    statistic: str
    steps: list[GradeStep]


class Fact(TypedDict):
    """A fact that the verdict rests on."""

    text: str
    value: str


EpisodeKind = Literal["delay", "loss", "gap", "path", "address", "other_test", "load"]


class Episode(TypedDict):
    """Something that happened while a connection was watched; times count from the run's time 0."""

    kind: EpisodeKind
    start_ns: int
    end_ns: int
    direction: Direction | None
    """The direction in which packets were late or lost; null: both, or not known."""
    added_p50_ns: int | None
    added_max_ns: int | None
    sent: int | None
    lost: int | None
    text: str


class MonitorSummary(TypedDict):
    """The numbers of a connection that was watched."""

    base_ns: int | None
    """The undisturbed round trip."""
    measured_ns: Count
    gaps: Count
    gaps_ns: Count
    late: Count
    late_ns: Count
    lossy: Count
    lost_up: Count
    lost_down: Count
    lost_unknown: Count
    other_tests: Count
    loads: Count


class WorstCase(TypedDict):
    """The worst case of the longest buffer in a direction, from a flood."""

    direction: Direction
    delay_ns: int
    """The largest standing delay over the idle median."""
    rate_bps: int | None
    bytes: int | None
    loss: float
    full: bool
    """Whether the buffer was full; otherwise it may be larger."""


class LiveVerdict(TypedDict):
    """The verdict about a live measurement."""

    idle: Idle
    phases: list[PhaseVerdict]
    """The loaded phases, in the order of their beginning."""
    worst_cases: NotRequired[list[WorstCase]]
    """Only with `measure --flood`."""
    grade: Grade | None
    grade_table: GradeTable
    sentences: list[str]
    """For a person at home: speed, delay, which queue, how sure, and what to do."""
    warnings: list[str]
    evidence: list[Fact]
