"""One run to carry out: as plain data that can be sent anywhere, and the function that carries it out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path

from bufferscope import _core
from bufferscope.base import machine
from bufferscope.base.commit import commit
from bufferscope.base.errors import EngineError
from bufferscope.base.reading import NamedFiles
from bufferscope.engines import Engine, Progress, engines
from bufferscope.engines.outcome import Outcome
from bufferscope.model.experiment import Experiment, Point
from bufferscope.model.identity import scenario_digest
from bufferscope.results.entries import concerning
from bufferscope.store import FORMAT, partition
from bufferscope.store.metadata import ExperimentMetadata, InitialMetadata, MemberFacts, Observed
from bufferscope.store.writing import directory_name, write_metadata


@dataclass(frozen=True)
class ExperimentSource:
    """An experiment as plain data, before it is parsed."""

    name: str
    path: str | None
    """The path of its file, as it was given; `None` if it comes with bufferscope."""
    text: str
    overrides: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...] = ()
    """The files that it names, with their contents."""

    @classmethod
    def of(cls, experiment: Experiment) -> "ExperimentSource":
        """The source of an experiment."""
        files = tuple(sorted(experiment.named.known.items()))
        return cls(experiment.name, experiment.path, experiment.text, experiment.overrides, files)

    def experiment(self) -> Experiment:
        """The experiment; the last few that were parsed are cached."""
        return _read(self)


@lru_cache(maxsize=4)
def _read(source: ExperimentSource) -> Experiment:
    file = source.path or f"{source.name}.toml"
    named = NamedFiles(known=dict(source.files))
    experiment = Experiment(source.name, source.text.encode(), file, source.overrides, named)
    experiment.path = source.path
    return experiment


@dataclass(frozen=True)
class Job:
    """A task as plain data, which any process with the same build of bufferscope can carry out."""

    source: ExperimentSource
    position: int
    seed: int
    engine: str
    kernel: str | None

    def task(self, out: Path) -> "Task":
        """The task, for runs that are stored under `out`."""
        (engine,) = engines(self.engine, kernel=self.kernel)
        return Task(self.source.experiment(), self.position, self.seed, engine, out)


@lru_cache(maxsize=64)
def _member(experiment: Experiment, position: int, number: int) -> Point:
    """The last few are cached, because a population can be large."""
    return experiment.points[position].member(number)


@dataclass(frozen=True)
class Task:
    """One run to be carried out."""

    experiment: Experiment
    position: int
    """Which of the experiment's points."""
    seed: int
    engine: Engine
    out: Path
    reuse: bool = False
    """Whether a stored run is taken instead, if a new one would give the same records."""

    @property
    def point(self) -> Point:
        """The chosen swept values; with a population, its member that has the seed as number.

        Raises `ExperimentError` if the member's values are impossible together.
        """
        return _member(self.experiment, self.position, self.seed)

    @property
    def experiment_dir(self) -> Path:
        """The directory of all runs of the experiment."""
        return self.out / self.experiment.name

    @property
    def directory(self) -> Path:
        """The directory of the run."""
        return self.experiment_dir / self.name

    @cached_property
    def name(self) -> str:
        """The name of the run, after which its directory is called."""
        return directory_name(self.point.values, self.engine.name, self.seed, self.point.scenario)

    @cached_property
    def duration_ns(self) -> int:
        """The simulated length of the run, which is the same for all members of a population."""
        return self.experiment.points[self.position].scenario["duration_ns"]

    @property
    def job(self) -> Job:
        """The same as plain data."""
        return Job(ExperimentSource.of(self.experiment), self.position, self.seed, self.engine.name, self.engine.kernel)

    def about(self) -> ExperimentMetadata:
        """The part of `run.json` about the experiment's file, without anything that an engine uses.

        It has the swept keys only with the number and a digest of their values, and only this run's expectations.
        """
        experiment = self.experiment
        return {
            "title": experiment.title,
            "path": experiment.path or "",
            "overrides": list(experiment.overrides),
            "position": self.position,
            "document": {**experiment.document, "sweep": experiment.axes, "expect": experiment.statements},
            "expectations": concerning(experiment.expectations, self.position),
        }

    def foreseen(self, identity: str | None) -> InitialMetadata:
        """The part of `run.json` that is known before the run, for an engine of this identity."""
        return {
            "format": FORMAT,
            "bufferscope": _core.__version__,
            "commit": commit(),
            "experiment": self.experiment.name,
            **self.about(),
            "engine": self.engine.name,
            "engine_identity": identity or "",
            "seed": self.seed,
            "point": self.point.values,
            **self._member(),
            "scenario": self.point.scenario,
        }

    def _member(self) -> MemberFacts:
        """What is particular to a member of a population."""
        drawn = self.point.drawn
        if drawn is None:
            return {}
        base = self.experiment.points[self.position].scenario
        return {"member": {**drawn, "of": scenario_digest(base)}}


def perform(task: Task, identity: str | None, staging: Path, progress: Progress) -> None:
    """Carry out a task: write its tables, and `run.json` as the last file, to the directory `staging`.

    `identity` is the engine's. Raises what the engine raises, and `OSError` if the directory can't be written.
    """
    clock = Clock()
    outcome = task.engine.run(task.point, task.seed, staging, progress)
    write_metadata(staging, {**task.foreseen(identity), **observed(task, outcome, clock)})


class Failed(Exception):
    """One of several tasks failed."""

    def __init__(self, task: Task, error: EngineError) -> None:
        """Keep the task and its error."""
        super().__init__(str(error))
        self.task = task
        self.error = error


def perform_together(
    tasks: Sequence[Task], identity: str | None, staging: Path, progress: Callable[[Task, int], bool]
) -> None:
    """Carry out tasks of one engine: write a partition of their runs to the directory `staging`.

    `progress` is called with the task and its simulated time in nanoseconds; False stops the run. Raises `Failed` if
    one of the runs fails, `EngineError` if the tables can't be completed, and `OSError` if the directory can't be
    written.
    """
    engine = tasks[0].engine
    assert engine.batch_runner, "the layout shares partitions only among runs of engines that support it"
    writer = engine.batch_runner(staging)
    metadata = []
    for task in tasks:

        def told(now_ns: int, _duration_ns: int, task: Task = task) -> bool:
            return progress(task, now_ns)

        clock = Clock()
        try:
            outcome = writer.run(task.point, task.seed, told)
        except EngineError as error:
            raise Failed(task, error) from error
        metadata.append({**task.foreseen(identity), **observed(task, outcome, clock)})
    writer.finish()
    partition.write(staging, [task.name for task in tasks], metadata)


class Clock:
    """Measures elapsed time and CPU time from its creation."""

    def __init__(self) -> None:
        """Start."""
        self.started = datetime.now(UTC)
        self._wall, self._cpu = time.perf_counter(), time.thread_time()

    def wall_s(self) -> float:
        """The wall-clock time since the start, in seconds."""
        return round(time.perf_counter() - self._wall, 6)

    def cpu_s(self) -> float:
        """The CPU time of this thread since the start, in seconds."""
        return round(time.thread_time() - self._cpu, 6)


def observed(task: Task, outcome: Outcome, clock: Clock) -> Observed:
    """The part of `run.json` that is known after the run."""
    return {
        "engine_version": outcome.engine_version,
        "started": clock.started.isoformat(timespec="seconds"),
        "wall_s": clock.wall_s(),
        "cpu_s": clock.cpu_s() if outcome.cpu_s is None else round(outcome.cpu_s, 6),
        "sampling": {
            "asked_ns": task.point.scenario["sample_interval_ns"],
            "achieved_ns": outcome.sample_interval_ns,
        },
        "mss_bytes": outcome.mss_bytes,
        "machine": machine.describe(),
        "warnings": [*task.point.notes, *outcome.warnings],
        "tables": outcome.tables,
        "summary": outcome.summary,
    }
