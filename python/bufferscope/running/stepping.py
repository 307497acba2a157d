"""A simulation that is advanced in steps, and observed and changed in between. Its records stay in memory."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bufferscope import _core
from bufferscope.base import machine
from bufferscope.base.arguments import EXPERIMENT, OVERRIDES, ArgumentKind, checked
from bufferscope.base.errors import EngineError, ExperimentError, InputError, check_number
from bufferscope.base.names import closest
from bufferscope.engines.sim import ENGINE
from bufferscope.engines.sim import engine as sim
from bufferscope.model.experiment import Experiment, load
from bufferscope.model.identity import LARGEST_SEED
from bufferscope.model.overrides import Overrides, as_texts
from bufferscope.running.job import Clock, Task, observed
from bufferscope.store.memory import MemoryRun, frame
from bufferscope.store.metadata import Metadata

if TYPE_CHECKING:
    import polars as pl

NANOSECONDS = 1_000_000_000
LONGEST_S = 1e10
"""Longer than any run, and short enough to be counted in nanoseconds."""


@dataclass(frozen=True)
class PortState:
    """The state of the sending side of one direction of a link. Counts are of packets since the start."""

    port: str
    """`<from>><to>`, as in `r1>h2`."""
    rate_bps: int | None
    """Rate at which the next frame will be sent; None: frames are not serialised, so nothing queues."""
    delay_ns: int
    """Propagation delay."""
    qdisc: str | None
    """The name of the queueing discipline; None without a rate."""
    queued: int
    """Packets waiting now."""
    queued_bytes: int
    """Bytes waiting now, link-layer overhead included."""
    arrived: int
    """Packets passed to the port."""
    dropped: int
    """Packets dropped by the queueing discipline."""
    marked: int
    """Packets marked with Congestion Experienced."""
    sent: int
    """Packets taken from the queue by the wire, or by the ring."""
    sent_bytes: int
    """Bytes taken from the queue by the wire, or by the ring, link-layer overhead included."""
    in_ring: int
    """Packets waiting in the ring now; 0 if it has none."""
    ring_bytes: int
    """Bytes waiting in the ring now, link-layer overhead included."""
    in_flight: int
    """Packets on the wire or propagating now."""
    delivered: int
    """Packets that have arrived at the other end."""


@dataclass(frozen=True)
class FlowState:
    """The state of the sending side of a flow. The quantities are those of the table `flows`; None: not available."""

    flow: str
    """`<traffic>/<number>`."""
    cwnd_bytes: int | None
    """Congestion window."""
    ssthresh_bytes: int | None
    """Slow-start threshold; None while it is unlimited."""
    inflight_bytes: int
    """Payload sent and neither acknowledged nor concluded lost."""
    srtt_ns: int | None
    """Smoothed round-trip time."""
    min_rtt_ns: int | None
    """Smallest round-trip time of the last five minutes."""
    pacing_bps: int | None
    """Pacing rate."""
    delivery_rate_bps: int | None
    """Delivery rate measured last, of payload."""
    delivered_bytes: int
    """Payload acknowledged (over UDP, arrived) since the start."""
    retransmits: int | None
    """Segments sent again since the start."""
    lost: int
    """Segments concluded lost and not repaired yet."""
    state: str | None
    """State of the congestion control: `open`, `disorder`, `cwr`, `recovery` or `loss`."""


@dataclass(frozen=True)
class SimulationState:
    """The state of a network at one time, before any event at that time."""

    now_s: float
    """The time in seconds since the beginning."""
    ports: dict[str, PortState]
    """By name, in the order of the links."""
    flows: dict[str, FlowState]
    """By name: TCP flows whose connection is established, and UDP flows that have begun."""


class SimulationTables(Mapping[str, "pl.DataFrame"]):
    """The tables of a simulation so far, by name. Each look-up copies the rows recorded so far."""

    def __init__(self, core: _core.Simulation) -> None:
        """Read the tables of a simulation.

        Parameters
        ----------
        core
            The simulation in the native core.
        """
        self._core = core

    def __getitem__(self, name: str) -> "pl.DataFrame":
        if name not in _core.TABLES:
            raise UnknownTableError(f"no table is called {name!r}{closest(str(name), _core.TABLES)}")
        with _told():
            return frame(self._core, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_core.TABLES)

    def __len__(self) -> int:
        return len(_core.TABLES)

    def __repr__(self) -> str:
        return f"SimulationTables({', '.join(self)})"


class UnknownTableError(InputError, KeyError):
    """There is no table of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


def _is_experiment(value: object) -> bool:
    return isinstance(value, Experiment) or EXPERIMENT.fits(value)


class Simulation:
    """A simulation in steps.

    The steps do not affect the records: they are the same as for an uninterrupted run, and the same calls give the same
    records. A change takes effect before all other events at the same time.

    >>> simulation = Simulation("ucas-reproduce")                                               # doctest: +SKIP
    >>> simulation.advance(until=10)                                                            # doctest: +SKIP
    >>> simulation.set("link.bottleneck.rate=2mbit")                                            # doctest: +SKIP
    >>> simulation.state().ports["r1>h2"].queued                                                # doctest: +SKIP
    97
    >>> simulation.finish().metrics["rtt.p95_ms"]                                               # doctest: +SKIP
    """

    @checked(experiment=ArgumentKind(f"an Experiment, {EXPERIMENT.words}", _is_experiment), overrides=OVERRIDES)
    def __init__(
        self, experiment: str | PathLike[str] | Experiment, overrides: Overrides = (), *, seed: int = 1, point: int = 0
    ) -> None:
        """Begin at time 0.

        Parameters
        ----------
        experiment
            A name from the catalogue, the path of a TOML file, an `Experiment`, or the text of a file (of several
            lines).
        overrides
            Changes to keys of the file, as for `bufferscope.run`.
        seed
            The seed of everything random, a whole number from 0 on.
        point
            The index of one of the experiment's points, if it has a sweep.

        Raises
        ------
        ExperimentError
            The experiment does not exist, or its file has mistakes.
        InputError
            `seed` or `point` is impossible.
        EngineError
            The simulator can't run it, because the machine lacks the memory for instance.
        """
        self.experiment = _experiment(experiment, overrides)
        check_number("seed", seed, 0, LARGEST_SEED)
        check_number("point", point, 0, len(self.experiment.points) - 1, f"it has {len(self.experiment.points)} points")
        seed, point = int(seed), int(point)  # NumPy's integers can't be written to `run.json`
        self._task = Task(self.experiment, point, seed, ENGINE, Path())
        (refusal,) = sim.refusals([self._task.point])
        if refusal:
            raise EngineError(refusal)
        self._clock = Clock()
        self._run: MemoryRun | None = None
        with _told():
            self._core = _core.Simulation(self._task.point.core, seed)
        self.tables = SimulationTables(self._core)
        """The tables so far, by name: `simulation.tables["queues"]`."""

    @property
    def now_s(self) -> float:
        """The current time in seconds; the duration once the simulation is finished."""
        return self._now_ns / NANOSECONDS

    @property
    def duration_s(self) -> float:
        """The length of the run in seconds."""
        return self._task.duration_ns / NANOSECONDS

    @property
    def is_over(self) -> bool:
        """Whether the current time is the end of the duration."""
        return self._now_ns == self._task.duration_ns

    def advance(self, seconds: float | None = None, *, until: float | None = None) -> None:
        """Advance to a later time. Events at exactly that time are not handled yet.

        Ctrl-C ends the simulation; its state and its tables can still be read.

        Parameters
        ----------
        seconds
            The time to advance by, in seconds.
        until
            The time to advance to, in seconds since the beginning. Give this or `seconds`.

        Raises
        ------
        InputError
            The time is in the past or after the duration, or both arguments or none are given.
        EngineError
            The simulation was ended before.
        """
        if (seconds is None) == (until is None):
            raise InputError("advance: give either the seconds to advance by, or until=...")
        if seconds is not None:
            until_ns = self._now_ns + _nanoseconds("seconds", seconds)
        else:
            until_ns = _nanoseconds("until", cast(float, until))
        with _told():
            self._core.advance(until_ns, _go_on)

    def steps(self, seconds: float) -> Iterator[float]:
        """Advance step by step to the end of the duration.

        Parameters
        ----------
        seconds
            The length of a step in seconds, at least 1 ns; the last step may be shorter.

        Yields
        ------
        float
            The time in seconds after each step.

        Raises
        ------
        InputError
            The length is impossible.
        """
        step_ns = _nanoseconds("seconds", seconds)
        if step_ns == 0:
            raise InputError(f"steps: found {seconds!r} s; allowed: at least 1 ns")
        while not self.is_over:
            with _told():
                self._core.advance(min(self._now_ns + step_ns, self._task.duration_ns), _go_on)
            yield self.now_s

    def state(self) -> SimulationState:
        """The present state of all ports and flows.

        Returns
        -------
        State
            The time in seconds, and the state of each port and each flow by its name.
        """
        with _told():
            found = json.loads(self._core.state())
        ports = {port["port"]: PortState(**port) for port in found["ports"]}
        flows = {flow["flow"]: FlowState(**flow) for flow in found["flows"]}
        return SimulationState(found["now_ns"] / NANOSECONDS, ports, flows)

    def set(self, *overrides: str | Mapping[str, object]) -> None:
        """Change keys of the experiment from now on.

        Rate, delay and queue of a link can change; traffic can stop (`traffic.bulk.stop=12s`); TCP traffic without
        `bytes` can have more flows or fewer (`traffic.bulk.flows=3`); and traffic can be added (`{"traffic.call":
        {"kind": "voip", "from": "h1", "to": "h2"}}`). After an error, nothing is changed.

        Parameters
        ----------
        *overrides
            Strings as for `--set`, or dicts of values by path.

        Raises
        ------
        ExperimentError
            A value is impossible.
        InputError
            A key can't change during a run.
        EngineError
            The machine lacks the memory.
        """
        texts = [text for each in overrides for text in as_texts([each] if isinstance(each, str) else each)]
        if not texts:
            raise InputError("set: found nothing; allowed: PATH=VALUE strings, or dicts of values by path")
        with _told():
            shortage = sim.shortage(json.loads(self._core.footprint(texts)), machine.available_bytes())
            if shortage:
                raise EngineError(shortage)
            self._core.change(texts)

    def finish(self) -> MemoryRun:
        """Run to the end. A second call returns the same run.

        Returns
        -------
        MemoryRun
            The run, whose records are in memory.

        Raises
        ------
        EngineError
            The simulation was ended before.
        """
        if self._run is None:
            with _told():
                scenario = json.loads(self._core.scenario)
                summary = json.loads(self._core.finish(_go_on))
            foreseen = self._task.foreseen(None)
            meta = {
                **foreseen,
                **observed(self._task, sim.outcome(self._task.point, summary), self._clock),
                "files": {},
            }
            if summary.get("changes"):
                # The expectations are about the unchanged experiment.
                meta |= {"scenario": scenario, "expectations": []}
            self._run = MemoryRun(cast(Metadata, meta), self._core)
        return self._run

    @property
    def _now_ns(self) -> int:
        if self._run:
            return self._task.duration_ns
        with _told():
            return self._core.now_ns

    def __repr__(self) -> str:
        return f"Simulation({self.experiment.name!r}, {self.now_s} s of {self.duration_s} s)"


@contextmanager
def _told() -> Iterator[None]:
    """Turn the core's exceptions into those of this package."""
    try:
        yield
    except (_core.SimulationError, _core.Interrupted, _core.TablesError) as error:
        raise EngineError(str(error)) from None
    except (ExperimentError, InputError):
        raise
    except ValueError as error:
        raise InputError(str(error)) from None


def _go_on(_now_ns: int, _duration_ns: int) -> bool:
    """Continue. If Ctrl-C was pressed, Python raises `KeyboardInterrupt` in this function."""
    return True


def _experiment(given: str | PathLike[str] | Experiment, overrides: Overrides) -> Experiment:
    if isinstance(given, Experiment):
        return given.with_overrides(overrides)
    text = fspath(given)
    if isinstance(text, str) and "\n" in text:
        return Experiment("experiment", text.encode(), "the experiment", overrides)
    return load(given, overrides)


def _nanoseconds(name: str, seconds: float) -> int:
    if not isinstance(seconds, Real) or not 0 <= seconds < math.inf:
        raise InputError(f"{name}: found {seconds!r:.60}; allowed: a number of seconds, 0 or more")
    return round(float(min(seconds, LONGEST_S)) * NANOSECONDS)
