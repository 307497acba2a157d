"""The events that `bufferscope-live measure --events` prints, one JSON object on each line.

The program's output comes from the same machine, but what it tells of the path comes from others: hops, a server. So
each event is checked before anything relies on it.
"""

import ipaddress
import json
from collections.abc import Mapping
from typing import Any, Literal, NoReturn, NotRequired, TypedDict, cast

from bufferscope.base.errors import EngineError, printable
from bufferscope.engines.live.observations import Observations, ObservedPhase
from bufferscope.store.live import Accuracy, EndProgram
from bufferscope.store.schema import Check, Mismatch, plain
from bufferscope.store.typed import Count, check_of
from bufferscope.store.verdict import Episode, LiveVerdict, MonitorSummary

LONGEST_LINE = 64 << 10
"""The most bytes of any other event."""
LONGEST_END = 512 << 20
"""The most bytes of the events `end` and `loaded`, which have all that was observed in a test."""
LONGEST_NS = 7 * 24 * 3600 * 1_000_000_000
"""The longest time from the first observation to the last."""
SHOWN = 200
"""The characters of a malformed line that an error shows."""


class StartEvent(TypedDict):
    """The measurement begins."""

    event: Literal["start"]
    version: str
    host: str
    address: str
    realtime_ns: Count
    phases: list[str]
    parameters: dict[str, object]
    server: EndProgram
    client: EndProgram
    continuous: NotRequired[bool]
    """Whether the connection is watched."""


class QueuedEvent(TypedDict):
    """Others are measured first."""

    event: Literal["queued"]
    position: Count


class PhaseEvent(TypedDict):
    """A phase begins."""

    event: Literal["phase"]
    phase: str
    t_ns: int
    at_most_s: float


class ProgressEvent(TypedDict):
    """The state of the measurement, about five times a second."""

    event: Literal["progress"]
    t_ns: int
    phase: str
    rtt_ms: float | None
    down_mbit: float | None
    up_mbit: float | None
    left_s: float | None


class WarningEvent(TypedDict):
    """Something to know."""

    event: Literal["warning"]
    text: str


class StateEvent(TypedDict):
    """The state of a connection that is watched, once a second."""

    event: Literal["state"]
    t_ns: int
    rtt_ms: float | None
    base_ms: float | None
    """The undisturbed round trip."""
    late_since_ns: int | None
    lossy_since_ns: int | None
    gap_since_ns: int | None
    """Since when nothing is measured."""
    gap_reason: str | None
    left_s: float | None


class SamplesEvent(TypedDict):
    """A part of what is observed of a connection that is watched.

    `up_ns` and `down_ns` of its echoes are how much later they were than undisturbed ones, without the difference of
    the clocks.
    """

    event: Literal["samples"]
    phase: ObservedPhase


class EpisodeEvent(TypedDict):
    """Something happened to a connection that is watched."""

    event: Literal["episode"]
    episode: Episode


class EndEvent(TypedDict):
    """The measurement is over; always the last event."""

    event: Literal["end"]
    complete: bool
    reason: str | None
    observations: Observations
    verdict: LiveVerdict
    accuracy: NotRequired[Accuracy]
    monitor: NotRequired[MonitorSummary]
    """Only of a connection that was watched, whose samples are in events of their own."""


class LoadedEvent(TypedDict):
    """A test with load in the meantime: its first and its last event."""

    event: Literal["loaded"]
    start: StartEvent
    end: EndEvent


Event = (
    StartEvent
    | QueuedEvent
    | PhaseEvent
    | ProgressEvent
    | WarningEvent
    | StateEvent
    | SamplesEvent
    | EpisodeEvent
    | LoadedEvent
    | EndEvent
)

_CHECKS: Mapping[str, Check] = {
    "start": check_of(StartEvent),
    "queued": check_of(QueuedEvent),
    "phase": check_of(PhaseEvent),
    "progress": check_of(ProgressEvent),
    "warning": check_of(WarningEvent),
    "state": check_of(StateEvent),
    "samples": check_of(SamplesEvent),
    "episode": check_of(EpisodeEvent),
    "loaded": check_of(LoadedEvent),
    "end": check_of(EndEvent),
}


def read(line: bytes) -> Event:
    """The event on a line. Raises `EngineError` if it is malformed."""
    try:
        found = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise malformed(f"{error}: {_shown(line)}") from None
    name = found.get("event") if isinstance(found, dict) else None
    check = _CHECKS.get(name) if isinstance(name, str) else None
    if check is None:
        raise malformed(f"expected an event ({', '.join(_CHECKS)}), found {_shown(line)}")
    try:
        plain(found, "")
        check(found, "")
        if name in ("end", "loaded"):
            _check_phases((found["end"] if name == "loaded" else found)["observations"])
        elif name == "samples":
            _check_phases({"phases": [found["phase"]]})
    except Mismatch as mismatch:
        raise malformed(f"in the event {name}: {mismatch}") from None
    return cast(Event, found)


def malformed(what: str) -> EngineError:
    """The error for output that is not as it must be."""
    return EngineError(f"the output of bufferscope-live is malformed: {what}")


def _check_phases(observations: Mapping[str, Any]) -> None:
    """Check what types do not say: addresses, the order of times, and how far apart they are."""
    for number, phase in enumerate(observations["phases"]):
        where = f"observations.phases[{number}]"
        if not 0 <= phase["end_ns"] - phase["start_ns"] <= LONGEST_NS:
            raise Mismatch(f"{where}.end_ns", phase["end_ns"], "a time after start_ns, at most a week later")
        for key in ("ladder", "tcp_ladder"):
            for place, probe in enumerate(phase.get(key, ())):
                _check_address(probe.get("address"), f"{where}.{key}[{place}].address")
        lists = [key for key, value in phase.items() if isinstance(value, list)]
        for key in lists:
            for place, sample in enumerate(phase[key]):
                if abs(sample["t_ns"] - phase["start_ns"]) > LONGEST_NS:
                    raise Mismatch(f"{where}.{key}[{place}].t_ns", sample["t_ns"], "a time near that of the phase")
    for number, flood in enumerate(observations.get("floods", ())):
        where = f"observations.floods[{number}]"
        for key in ("rtts", "received"):
            for place, pair in enumerate(flood[key]):
                if len(pair) != 2 or pair[0] is None or abs(pair[0] - flood["start_ns"]) > LONGEST_NS:
                    raise Mismatch(f"{where}.{key}[{place}]", pair, "a time near that of the flood, and a value")
    for key in ("up_ns", "down_ns"):
        echoes = (echo.get(key) for phase in observations["phases"] for echo in phase.get("echoes", ()))
        known = [value for value in echoes if value is not None]
        if known and max(known) - min(known) > LONGEST_NS:
            raise Mismatch(f"observations.phases.echoes.{key}", max(known) - min(known), "changes of at most a week")
    phases = observations["phases"]
    times = [phase[key] for phase in phases for key in ("start_ns", "end_ns")]
    if times and max(times) - min(times) > LONGEST_NS:
        raise Mismatch("observations.phases", max(times) - min(times), "times that are at most a week apart")


def _check_address(value: str | None, where: str) -> None:
    if value is None:
        return
    try:
        ipaddress.ip_address(value)
    except ValueError:
        raise Mismatch(where, value, "an address of IPv4 or IPv6") from None


def _shown(line: bytes) -> str:
    text = printable(line[:SHOWN].decode(errors="replace"))
    return text + ("..." if len(line) > SHOWN else "")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
