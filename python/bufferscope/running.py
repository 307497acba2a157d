"""Carrying out runs: points times seeds, several at once, results in the order of the plan."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from bufferscope import _core, machine
from bufferscope.engines import Engine
from bufferscope.engines.outcome import Outcome
from bufferscope.errors import EngineError, InputError
from bufferscope.expectations import concerning
from bufferscope.experiment import Experiment, Point
from bufferscope.store import FORMAT
from bufferscope.store.reuse import stored
from bufferscope.store.run import Run
from bufferscope.store.writing import directory_name, prepare, staged, write_metadata

MOST_RUNS = 100_000
"""Most runs in one call."""
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Task:
    """One run to be carried out."""

    experiment: Experiment
    position: int
    """Which of the experiment's points."""
    seed: int
    engine: Engine
    out: Path

    @property
    def point(self) -> Point:
        """The chosen swept values."""
        return self.experiment.points[self.position]

    @property
    def shelf(self) -> Path:
        """Where all runs of the experiment are."""
        return self.out / self.experiment.name

    @cached_property
    def directory(self) -> Path:
        """Where the run will be."""
        return self.shelf / directory_name(self.point.values, self.engine.name, self.seed, self.point.scenario)

    @cached_property
    def duration_ns(self) -> int:
        """The simulated length of the run."""
        return int(self.point.scenario["duration_ns"])


class Watcher(Protocol):
    """Is notified of the progress of runs, from any thread."""

    def advanced(self, task: Task, now_ns: int) -> None:
        """The run has reached this simulated time."""

    def finished(self, task: Task) -> None:
        """The run is stored."""


class Unwatched:
    """A watcher that does nothing."""

    def advanced(self, task: Task, now_ns: int) -> None:
        """Do nothing."""

    def finished(self, task: Task) -> None:
        """Do nothing."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: the runs that had finished are stored and complete."""

    def __init__(self, finished: Sequence[Run], planned: int) -> None:
        """Remember what was finished."""
        super().__init__(f"interrupted after {len(finished)} of {planned} runs")
        self.finished = tuple(finished)
        self.planned = planned


class RunsFailedError(EngineError):
    """Some runs failed; the others are stored."""

    def __init__(self, failures: Sequence[tuple[Task, Exception]], finished: Sequence[Run]) -> None:
        """Remember what failed and what was finished."""
        task, error = failures[0]
        more = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
        super().__init__(f"{task.experiment.name} ({task.point}; seed {task.seed}): {error}{more}")
        self.failures = tuple(failures)
        self.finished = tuple(finished)


def plan(experiment: Experiment, engines: Sequence[Engine], out: Path, *, seed: int = 1, repeat: int = 1) -> list[Task]:
    """Every point on each engine with `repeat` seeds from `seed` on, point by point."""
    apiece = len(experiment.points) * len(engines)
    _check("repeat", repeat, 1, MOST_RUNS // apiece, f"{MOST_RUNS} runs at a time, {apiece} for each seed")
    _check("seed", seed, 0, LARGEST_SEED - (repeat - 1), f"--repeat {repeat} goes on counting from it")
    seeds = range(seed, seed + repeat)
    return [
        Task(experiment, position, seed, engine, out)
        for position in range(len(experiment.points))
        for engine in engines
        for seed in seeds
    ]


def execute(
    tasks: Sequence[Task], *, jobs: int | None = None, watcher: Watcher | None = None, reuse: bool = False
) -> list[Run]:
    """Carry out the tasks, `jobs` at a time (default: one per processor); returns the runs in the tasks' order.

    Real-time runs come after all others, one at a time, whatever `jobs` is. With `reuse`, a stored run that would come
    out the same is used instead of running again.

    Raises `EngineError` before anything runs if an engine can't run a task's point, `RunsFailedError` if an engine
    failed, after all others are done, and `Interrupted` on Ctrl-C.
    """
    jobs = machine.cpus() if jobs is None else jobs
    _check("jobs", jobs, 1, 1024)
    _refuse_what_cannot_run(tasks)
    for directory in dict.fromkeys(task.shelf for task in tasks):
        prepare(directory)
    stop = threading.Event()
    together = [task for task in tasks if not task.engine.real_time]
    alone = [task for task in tasks if task.engine.real_time]
    futures: dict[Task, Future[Run]] = {}
    for group, workers in ((together, jobs), (alone, 1)):
        with ThreadPoolExecutor(workers, thread_name_prefix="run") as pool:
            try:
                for task in group:
                    futures[task] = pool.submit(_carry_out, task, watcher or Unwatched(), stop, reuse)
                wait(futures.values())
            except KeyboardInterrupt:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise Interrupted(_finished(tasks, futures), len(tasks)) from None
    failures = [(task, error) for task in tasks if (error := _failure(futures[task]))]
    if failures:
        raise RunsFailedError(failures, _finished(tasks, futures))
    return [futures[task].result() for task in tasks]


def _refuse_what_cannot_run(tasks: Sequence[Task]) -> None:
    """Raise `EngineError` for the first task whose point its engine can't run, with the number of others."""
    refused: list[tuple[Task, str]] = []
    for engine in dict.fromkeys(task.engine for task in tasks):
        own = {(task.experiment, task.position): task for task in tasks if task.engine is engine}
        reasons = engine.refusals([task.point for task in own.values()])
        refused += [(task, reason) for task, reason in zip(own.values(), reasons, strict=True) if reason]
    if refused:
        task, reason = refused[0]
        more = f" (and {len(refused) - 1} more points can't run)" if len(refused) > 1 else ""
        raise EngineError(f"{task.experiment.name} ({task.point}) on {task.engine.name}: {reason}{more}")


def _carry_out(task: Task, watcher: Watcher, stop: threading.Event, reuse: bool) -> Run:
    """One run, in a thread of its own."""
    identity = task.engine.identity()
    if reuse and (run := stored(task.directory, identity, task.point.scenario, _about(task))):
        watcher.finished(task)
        return run

    def progress(now_ns: int, _duration_ns: int) -> bool:
        watcher.advanced(task, now_ns)
        return not stop.is_set()

    with staged(task.directory) as place:
        started, wall, cpu = datetime.now(UTC), time.perf_counter(), time.thread_time()
        outcome = task.engine.run(task.point, task.seed, place, progress)
        cpu_s = time.thread_time() - cpu if outcome.cpu_s is None else outcome.cpu_s
        spent = (time.perf_counter() - wall, cpu_s)
        write_metadata(place, _metadata(task, outcome, identity, started, spent))
    watcher.finished(task)
    return Run(task.directory)


def _about(task: Task) -> dict[str, Any]:
    """What `run.json` says about the experiment's file, without anything that an engine sees.

    Of the sweep, it has only this run's values: other runs have their own.
    """
    experiment = task.experiment
    return {
        "title": experiment.title,
        "path": experiment.path or "",
        "overrides": list(experiment.overrides),
        "position": task.position,
        "document": {**experiment.document, "sweep": experiment.axes, "expect": experiment.statements},
        "expectations": concerning(experiment.expectations, task.position),
    }


def _metadata(
    task: Task, outcome: Outcome, identity: str | None, started: datetime, spent: tuple[float, float]
) -> dict[str, Any]:
    wall_s, cpu_s = spent
    return {
        "format": FORMAT,
        "bufferscope": _core.__version__,
        "experiment": task.experiment.name,
        **_about(task),
        "engine": task.engine.name,
        "engine_version": outcome.engine_version,
        **({} if identity is None else {"engine_identity": identity}),
        "seed": task.seed,
        "point": task.point.values,
        "started": started.isoformat(timespec="seconds"),
        "wall_s": round(wall_s, 6),
        "cpu_s": round(cpu_s, 6),
        "sampling": {
            "asked_ns": task.point.scenario["sample_interval_ns"],
            "achieved_ns": outcome.sample_interval_ns,
        },
        "mss_bytes": outcome.mss_bytes,
        "machine": machine.describe(),
        "warnings": [*task.point.notes, *outcome.warnings],
        "tables": outcome.tables,
        "summary": outcome.summary,
        "scenario": task.point.scenario,
    }


def _finished(tasks: Sequence[Task], futures: Mapping[Task, Future[Run]]) -> list[Run]:
    """The finished runs, in the tasks' order."""
    begun = [futures[task] for task in tasks if task in futures]
    return [future.result() for future in begun if not future.cancelled() and future.exception() is None]


def _failure(future: Future[Run]) -> Exception | None:
    """The failure of an engine or the file system; anything else is a bug and raised unchanged."""
    error = future.exception()
    if error is None:
        return None
    if isinstance(error, EngineError):
        return error
    if isinstance(error, OSError):
        return EngineError(f"cannot write {error.filename or 'the run'}: {error.strerror}")
    raise error


def _check(option: str, value: int, lowest: int, highest: int, why: str = "") -> None:
    """Refuse a number outside its bounds; `why` says where the upper bound comes from."""
    if not lowest <= value <= highest:
        reason = f" ({why})" if why and value > highest else ""
        raise InputError(f"--{option}: found {value}; allowed: {lowest} to {highest}{reason}")
