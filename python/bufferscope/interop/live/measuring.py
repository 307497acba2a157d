"""A live measurement from its request to a stored run."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

from bufferscope.base import machine
from bufferscope.base.errors import EngineError, printable
from bufferscope.engines import live as engine
from bufferscope.engines.live import events
from bufferscope.engines.live.events import EndEvent, Event, LoadedEvent, StartEvent
from bufferscope.engines.live.measurement import Measurement, interruptible
from bufferscope.engines.live.observations import Observations
from bufferscope.engines.live.program import NAME, Request
from bufferscope.interop import external_runs as observed
from bufferscope.interop.external_runs import Observation, TrafficEntry
from bufferscope.interop.live import monitoring, records
from bufferscope.interop.live.monitoring import Samples
from bufferscope.interop.live.names import CLIENT, ECHOES, SERVER, load_name
from bufferscope.store.live import LiveMeasurement
from bufferscope.store.run import Run
from bufferscope.store.verdict import Direction, LiveVerdict
from bufferscope.store.writing import prepare

Watch = Callable[[Event], None]
"""Called with each event."""
DIRECTIONS: tuple[Direction, ...] = ("down", "up")
FIGURES = ("live", "rtt_cdf")
FIGURES_WITHOUT_ECHOES = ("live",)
NOT_MEASURED = ("transfers", "estimates", "round_trips", "retransmissions")
PORT = re.compile(r"(?<=\]):\d+$|^(?P<host>[^:]+):\d+$")


@dataclass
class _Seen:
    """What the program has printed."""

    start: StartEvent | None = None
    end: EndEvent | None = None
    warnings: list[str] = field(default_factory=list)
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    directory: Path | None = None
    """Where samples may be kept until the end."""
    samples: Samples | None = None
    """Those of a connection that is watched."""

    def take(self, event: Event, line: bytes) -> None:
        self.size += len(line) + 1
        self.digest.update(line + b"\n")
        if event["event"] == "start":
            self.start = event
            if event.get("continuous") and self.directory and self.samples is None:
                self.samples = Samples(self.directory)
        elif event["event"] == "samples" and self.samples:
            self.samples.take(event["phase"])
        elif event["event"] == "episode" and self.samples:
            self.samples.tell(event["episode"])
        elif event["event"] == "end":
            self.end = event
        elif event["event"] == "warning":
            self.warnings.append(event["text"])


@dataclass(frozen=True)
class StoredMeasurement:
    """A stored measurement."""

    run: Run
    was_interrupted: bool
    """Whether it ended early because of Ctrl-C."""


def measure(request: Request, out: Path = Path("results"), watch: Watch = lambda _event: None) -> StoredMeasurement:
    """Measure a connection, and store what was observed as a run under `out`, also if it ended early.

    On Ctrl-C, the measurement ends and the run has what was observed until then. Raises `InputError` if the program
    refuses the request or `out` can't be written, and `EngineError` if there is no result.
    """
    directory = out / experiment(request)
    prepare(directory)  # refuse it before anything is measured
    seen = _Seen(directory=directory)
    begin = monotonic()
    with _closing_samples(seen):
        with Measurement(request) as measurement, interruptible(measurement):
            for event, line in measurement.events():
                seen.take(event, line)
                if event["event"] == "loaded":
                    _store_loaded(event, line, experiment(request), out)
                watch(event)
        run = _stored(seen, experiment(request), out, monotonic() - begin)
    return StoredMeasurement(run, measurement.was_stopped and not run.meta["summary"]["live"]["complete"])


def read_events(lines: Iterable[bytes], out: Path = Path("results"), name: str | None = None) -> Run:
    """Store the measurement whose events are these lines, as `bufferscope-live measure --events` prints them.

    `name` is that of the experiment, by default the name of the host.

    Raises as `measure`.
    """
    out.mkdir(parents=True, exist_ok=True)
    seen = _Seen(directory=out)
    with _closing_samples(seen):
        for line in lines:
            seen.take(events.read(line.rstrip(b"\n")), line.rstrip(b"\n"))
        host = seen.start["host"] if seen.start else ""
        return _stored(seen, name or _name(host), out, None)


@contextmanager
def _closing_samples(seen: _Seen) -> Iterator[None]:
    """Within the block, samples may be kept in files, which are removed after it."""
    try:
        yield
    finally:
        if seen.samples:
            seen.samples.close()


def _store_loaded(event: LoadedEvent, line: bytes, name: str, out: Path) -> Run:
    """Store a test with load that was made while the connection was watched, as a run of its own."""
    seen = _Seen(start=event["start"], end=event["end"], size=len(line), digest=hashlib.sha256(line))
    return _store(name, event["start"], seen, out, None)


def _stored(seen: _Seen, name: str, out: Path, wall_s: float | None) -> Run:
    """Store what was seen. Raises `EngineError` if that is not a measurement."""
    if seen.start is None or seen.end is None:
        raise EngineError(f"{NAME} had a result without a beginning")
    return _store(name, seen.start, seen, out, wall_s)


def experiment(request: Request) -> str:
    """The name under which the runs of a host are stored: that of the host, without the port.

    >>> experiment(Request("example.org:47300", "token")), experiment(Request("[2001:db8::1]:47300", "token"))
    ('example.org', '2001-db8-1')
    >>> experiment(Request("https://example.org:4043/api/v1/config"))
    'example.org'
    """
    return _name(request.host)


def _name(host: str) -> str:
    if "://" in host:
        host = host.partition("://")[2].partition("/")[0].partition("?")[0]
    return observed.experiment_name(PORT.sub(r"\g<host>", host))


def _store(name: str, start: StartEvent, seen: _Seen, out: Path, wall_s: float | None) -> Run:
    """Store a measurement."""
    assert seen.end, "checked by the caller"
    end = seen.end
    observations = end["observations"]
    samples = seen.samples
    observation = Observation(
        name=name,
        title=f"{'Watching' if samples else 'Live measurement of'} the connection to {printable(start['host'])}",
        engine=engine.ENGINE.name,
        tool=NAME,
        version=start["version"],
        sources=[{"file": _events(start), "bytes": seen.size, "sha256": seen.digest.hexdigest()}],
        duration_ns=monitoring.duration_ns(end) if samples else records.duration_ns(observations),
        traffic=_traffic(observations),
        hosts=(CLIENT, SERVER),
        warmup_ns=_idle_ns(observations),
        started=_moment(start["realtime_ns"]),
        sample_interval_ns=_interval_ns(observations),
        not_measured=(*NOT_MEASURED, *(("flows",) if samples else ())),
        warnings=list(dict.fromkeys([*seen.warnings, *end["verdict"]["warnings"], *_partial(end), *_left_out(seen)])),
        figures=FIGURES_WITHOUT_ECHOES if "protocol" in observations.get("parameters", {}) else FIGURES,
        live=_live(start, end, samples),
        wall_s=wall_s,
        machine=machine.describe(),
    )
    return observed.store(observation, samples.whole() if samples else records.frames(observations), out)


def _left_out(seen: _Seen) -> list[str]:
    if not seen.samples or not seen.samples.left_out:
        return []
    return [f"{seen.samples.left_out} more episodes are not listed; the tables have their samples."]


def _live(start: StartEvent, end: EndEvent, samples: Samples | None) -> LiveMeasurement:
    observations = end["observations"]
    found: LiveMeasurement = {
        "host": start["host"],
        "address": start["address"],
        "client": {"version": start["version"], **start["client"]},
        "server": start["server"],
        "complete": end["complete"],
        "reason": end["reason"],
        "parameters": observations.get("parameters") or start["parameters"],
        "ends": observations["ends"],
        "phases": samples.phases(end) if samples else records.phases(observations),
        "accuracy": end.get("accuracy", {}),
        "verdict": _moved(end["verdict"], 0 if samples else records.origin_ns(observations)),
    }
    if floods := records.floods(observations):
        found["floods"] = floods
    if samples and (monitor := end.get("monitor")):
        found["monitor"], found["episodes"] = monitor, samples.episodes
    return found


def _moved(verdict: LiveVerdict, begin_ns: int) -> LiveVerdict:
    """The verdict with times that count from the run's time 0."""
    return {**verdict, "phases": [{**each, "start_ns": each["start_ns"] - begin_ns} for each in verdict["phases"]]}


def _partial(end: EndEvent) -> list[str]:
    if end["complete"]:
        return []
    return [f"The measurement is not complete: {end['reason'] or 'it ended early'}."]


def _traffic(observations: Observations) -> list[TrafficEntry]:
    """The echoes, and each direction of each load."""
    begin = records.origin_ns(observations)
    parameters = observations.get("parameters", {})
    interval_ns, congestion = parameters.get("probe_interval_ns"), parameters.get("congestion")
    entries = [TrafficEntry(ECHOES, "irtt", CLIENT, SERVER, {"interval_ns": interval_ns} if interval_ns else {})]
    for phase in observations["phases"]:
        for direction in DIRECTIONS:
            own = {each["flow"] for each in phase.get("flows", ()) if each["direction"] == direction}
            ends = (CLIENT, SERVER) if direction == "up" else (SERVER, CLIENT)
            settings = {"flows": len(own), **({"congestion": congestion} if isinstance(congestion, str) else {})}
            times = phase["start_ns"] - begin, phase["end_ns"] - begin
            name = load_name(phase["kind"], direction)
            if own and name not in {entry.name for entry in entries}:
                entries.append(TrafficEntry(name, "tcp", *ends, settings, *times))
    return entries


def _idle_ns(observations: Observations) -> int:
    """The time before the first load."""
    loaded = [phase["start_ns"] for phase in observations["phases"] if phase["kind"] not in ("idle", "cool_down")]
    return min(loaded, default=records.origin_ns(observations)) - records.origin_ns(observations)


def _interval_ns(observations: Observations) -> int:
    """The time between two samples of a flow."""
    times = sorted({each["t_ns"] for phase in observations["phases"] for each in phase.get("flows", ())})
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 100_000_000


def _events(start: StartEvent) -> str:
    """The name of the run's source, which is no file: the events of a moment."""
    moment = _moment(start["realtime_ns"])
    return f"events of {moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "events"


def _moment(realtime_ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(realtime_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return None
