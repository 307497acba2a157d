"""What a measurement shows of a line, as far as a model needs it; the first such measurement is a live one."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bufferscope.analysis import live as words
from bufferscope.analysis.fixing.framing import FRAMINGS, UNKNOWN
from bufferscope.analysis.fixing.located import ALONE, located
from bufferscope.analysis.fixing.rates import VARYING, by_bin, packet_and_payload, shaper_rate
from bufferscope.base.errors import InputError
from bufferscope.metrics.records import RunRecords
from bufferscope.store.live import LiveMeasurement, live_of
from bufferscope.store.verdict import Direction, DirectionNumbers, PhaseKind, PhaseVerdict, Place
from bufferscope.studies.modelling.line import LOADS, MANAGED

ETHERNET = 14
"""Bytes of an Ethernet header."""
LONGEST_S = 60.0
"""The longest load that is simulated."""
SECOND = 1_000_000_000
KINDS: tuple[PhaseKind, ...] = ("download", "upload", "both")
LEAST_JITTER_NS = 200_000
"""A smaller spread of idle round trips is that of the two machines."""
LEAST_BPS = 1000.0
CONTROLS = ("cubic", "reno", "bbr")
"""The congestion controls that a model may have."""
DEFAULT_CONTROL = "cubic"
SAME_RTT, SAME_RTT_NS = 0.1, 2_000_000
"""Idle round trips of several files that differ by more are not those of one path."""

QueueKind = Literal["tail_drop", "managed", "any", "unknown"]
Trips = Literal["probes", "flows"]


@dataclass(frozen=True)
class PhaseResult:
    """The numbers of a phase, measured or modelled."""

    p50_ms: float | None
    """Round trips under load, in ms; None if that percentile is among lost probes."""
    p95_ms: float | None
    """The 95th percentile of the same, in ms."""
    goodput_mbit: dict[Direction, float]
    """The mean goodput of each loaded direction, in Mbit/s; empty if it was not measured."""
    lost: float | None = None
    """The part of the probes that were lost; None without probes."""


@dataclass(frozen=True)
class QueueEvidence:
    """What the data show of the queue of a direction."""

    kind: QueueKind
    """`tail_drop`, `managed` (flow queueing) or `unknown`; `any`: there is a queue, and comparing models shows its
    kind."""
    full_ns: int | None = None
    """The delay that it adds when it is full, in ns."""
    note: str | None = None
    """What is not known of it, in a sentence."""


@dataclass(frozen=True)
class MeasuredDirection:
    """One loaded direction."""

    frame_bps: float
    """The rate of IP packets with an Ethernet header, in bit/s."""
    is_given: bool
    """Whether the user gave the rate, because the data do not show it."""
    steps: tuple[tuple[float, float], ...]
    """A rate that varies: seconds after the beginning of the load, and bit/s; otherwise empty."""
    queue: QueueEvidence
    """What the data show of its queue."""
    flows: tuple[int, ...]
    """The number of connections of the load; several if the data do not show it, of which the best is taken."""
    shaper_bps: float | None
    """What a shaper may send, in bit/s of frames; None if the rate varies."""
    place: Place | None = None
    """Where the queue is, if the measurement says so."""


@dataclass(frozen=True)
class MeasuredPhase:
    """A phase with load."""

    kind: PhaseKind
    """What was loaded: `download`, `upload` or `both`."""
    load_s: float
    """How long, in s."""
    result: PhaseResult
    """What was measured."""
    trips: Trips
    """What the round trips are: those of separate probes, or the smoothed ones of the load's own connections."""


@dataclass(frozen=True)
class MeasuredLine:
    """What a measurement shows of a line."""

    name: str
    """What follows `the line`: `to 203.0.113.9`, `of evening`."""
    rtt_ns: int
    """The round trip of the idle path, in ns."""
    jitter_ns: int
    """How far the propagation delay of each direction varies, uniformly, in ns; 0: not noticeably."""
    congestion: str
    """The congestion control of the load, by its name in Linux."""
    payload_share: float
    """The part of a frame that is payload."""
    directions: Mapping[Direction, MeasuredDirection]
    """Those that were loaded."""
    phases: tuple[MeasuredPhase, ...]
    """Those with load, each kind once."""
    notes: tuple[str, ...] = ()
    """What is not known, in sentences."""


def of_live(run: RunRecords) -> MeasuredLine:
    """What a live measurement shows. Raises `InputError` if that is too little for a model."""
    live = live_of(run.meta["summary"])
    if live is None:
        raise InputError(f"{run.id}: no live measurement; allowed: a run of `bufferscope measure`")
    idle_ns = live["verdict"]["idle"]["rtt"]["p50_ns"]
    if idle_ns is None:
        raise InputError(f"{run.id}: the idle round trip was not measured, so there is no model")
    packet, payload = packet_and_payload(live)
    share = payload / (packet + ETHERNET)
    places = {queue.direction: queue.place for queue in located(live).queues}
    ways: tuple[Direction, ...] = ("up", "down")
    directions = {
        way: replace(_direction(run, live, way, *found, share), place=places.get(way))
        for way in ways
        if (found := _loaded(live, way))
    }
    if not directions:
        raise InputError(f"{run.id}: nothing was measured under load, so there is no model")
    phases = [
        MeasuredPhase(kind, _length_s(live, phase), _result(phase), "probes")
        for kind in KINDS
        if (phase := words.of_phase(live["verdict"], kind))
        and phase["numbers"]["loaded"]["count"]
        and all(way in directions for way in LOADS[kind])
    ]
    congestion = live["parameters"].get("congestion")
    name = str(congestion) if congestion in CONTROLS else DEFAULT_CONTROL
    jitter_ns = jitter_of(idle_ns, live["verdict"]["idle"]["rtt"]["p95_ns"])
    return MeasuredLine(f"to {live['host']}", idle_ns, jitter_ns, name, share, directions, tuple(phases))


def jitter_of(p50_ns: int, p95_ns: int | None) -> int:
    """The jitter of each direction by the idle round trips.

    Two delays that vary uniformly by `j` have a sum whose 95th percentile is `2 j (1 - sqrt(0.1))` above its median.

    >>> jitter_of(20_000_000, 21_368_000), jitter_of(20_000_000, 20_100_000), jitter_of(1_000_000, 9_000_000)
    (1000206, 0, 500000)
    """
    if p95_ns is None or p95_ns - p50_ns < LEAST_JITTER_NS:
        return 0
    return min(round((p95_ns - p50_ns) / (2 * (1 - math.sqrt(0.1)))), p50_ns // 2)


def merged(lines: Sequence[MeasuredLine]) -> MeasuredLine:
    """What several measurements of one line show together: of each direction and phase, the first that has it.

    A direction that was loaded alone in any of them is taken from there.
    """
    first = lines[0]
    if len(lines) == 1:
        return first
    longest, least = max(each.rtt_ns for each in lines), min(each.rtt_ns for each in lines)
    notes = [note for each in lines for note in each.notes]
    if longest - least > max(SAME_RTT * longest, SAME_RTT_NS):
        notes.append(
            f"The idle round trips of these measurements are {least / 1e6:.3g} to {longest / 1e6:.3g} ms: they may not "
            "be of the same path."
        )
    directions: dict[Direction, MeasuredDirection] = {}
    for way in ("up", "down"):
        alone = [each for each in lines if any(phase.kind == ALONE[way] for phase in each.phases)]
        for each in (*alone, *lines):
            if way in each.directions:
                directions.setdefault(way, each.directions[way])
    phases: dict[PhaseKind, MeasuredPhase] = {}
    for each in lines:
        for phase in each.phases:
            phases.setdefault(phase.kind, phase)
    ordered = tuple(phases[kind] for kind in KINDS if kind in phases)
    return replace(first, rtt_ns=least, directions=directions, phases=ordered, notes=tuple(dict.fromkeys(notes)))


def notes_of(line: MeasuredLine) -> tuple[str, ...]:
    """What is not known of a line, in sentences, each once."""
    return tuple(dict.fromkeys(_notes(line)))


def _notes(line: MeasuredLine) -> Iterator[str]:
    yield from line.notes
    for way in ("up", "down"):
        found = line.directions.get(way)
        if found is None:
            yield f"The {way} direction was not measured under load: the model has 1 Gbit/s there."
        elif found.queue.note:
            yield found.queue.note


def _direction(
    run: RunRecords, live: LiveMeasurement, way: Direction, phase: PhaseVerdict, numbers: DirectionNumbers, share: float
) -> MeasuredDirection:
    assert numbers["goodput"]
    steps: tuple[tuple[float, float], ...] = ()
    if (numbers["goodput"]["variation"] or 0) > VARYING:
        seconds = by_bin(run, live, phase, way)
        steps = tuple((float(at), max(each / share, LEAST_BPS)) for at, each in enumerate(seconds))
    rate = shaper_rate(run, way, FRAMINGS[UNKNOWN])
    return MeasuredDirection(
        numbers["goodput"]["mean_bps"] / share,
        is_given=False,
        steps=steps,
        queue=_queue(phase, numbers, way),
        flows=(max(numbers["load"]["flows"], 1) if numbers["load"] else 1,),
        shaper_bps=None if rate is None or rate.varies else rate.goodput_bps / share * (1 - rate.margin),
    )


def _queue(phase: PhaseVerdict, numbers: DirectionNumbers, way: str) -> QueueEvidence:
    """The queue of a direction, and what is not known of it."""
    kind = phase["outcome"]["kind"]
    added = numbers["added"] if numbers["added"]["max_ns"] else phase["numbers"]["added"]
    full_ns = added["p99_ns"] or added["max_ns"]  # that of the probes that were not lost
    if kind == "queue" and numbers["rises"] and full_ns:
        return QueueEvidence("tail_drop", full_ns)
    if kind == "managed":
        return QueueEvidence("managed")
    note = f"The {way} queue is not known ({words.OUTCOMES[kind]}): the model has {MANAGED} there."
    if kind == "not_filled":
        note += " Its rate is at least that of the model."
    return QueueEvidence("unknown", note=note)


def _result(phase: PhaseVerdict) -> PhaseResult:
    """The numbers of a measured phase."""
    loaded = phase["numbers"]["loaded"]
    rates = {
        each["direction"]: each["goodput"]["mean_bps"] / 1e6
        for each in phase["numbers"]["directions"]
        if each["loaded"] and each["goodput"]
    }
    return PhaseResult(_ms(loaded["p50_ns"]), _ms(loaded["p95_ns"]), rates, loaded["lost"] / max(loaded["count"], 1))


def _length_s(live: LiveMeasurement, phase: PhaseVerdict) -> float:
    """How long a phase lasted."""
    times = next((each for each in live["phases"] if each["start_ns"] == phase["start_ns"]), None)
    return min((times["end_ns"] - times["start_ns"]) / SECOND, LONGEST_S) if times else 10.0


def _loaded(live: LiveMeasurement, way: Direction) -> tuple[PhaseVerdict, DirectionNumbers] | None:
    found = [
        (phase, each)
        for kind in (ALONE[way], "both")
        for phase in live["verdict"]["phases"]
        if phase["kind"] == kind
        for each in phase["numbers"]["directions"]
        if each["direction"] == way and each["loaded"] and each["goodput"]
    ]
    return next(iter(found), None)


def _ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6
