"""Reproducing the catalogue: which of its points an engine can run here, and what is stored of a real kernel."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bufferscope.base.errors import StoreError
from bufferscope.engines import carrying, engines
from bufferscope.engines.availability import lacking
from bufferscope.model.directions import SIDES
from bufferscope.model.experiment import Experiment, Point
from bufferscope.results.expectations import evaluate
from bufferscope.results.verdicts import ExpectationResult
from bufferscope.running.executors import refused
from bufferscope.running.job import Task
from bufferscope.running.plan import plan
from bufferscope.store import tables
from bufferscope.store.reading import is_run
from bufferscope.store.run import Run

_log = logging.getLogger(__name__)


def compared() -> tuple[str, ...]:
    """The engines whose measurements are shown side by side: those that give the same ones every time."""
    return tuple(engine.name for engine in carrying() if not engine.real_time)


@dataclass(frozen=True)
class LeftOut:
    """A point without a run on an engine."""

    experiment: str
    position: int
    point: str
    """The point's swept values in words."""
    engine: str
    reason: str
    failed: bool = False
    """Whether the engine failed; otherwise it cannot run the point."""

    @classmethod
    def of(cls, task: Task, reason: str, failed: bool = False) -> "LeftOut":
        """The point of a task."""
        return cls(task.experiment.name, task.position, str(task.point), task.engine.name, reason, failed)

    @property
    def key(self) -> tuple[str, int, str]:
        """Experiment, point and engine."""
        return self.experiment, self.position, self.engine

    @property
    def told(self) -> str:
        """The point and the reason in words."""
        return f"{self.experiment} ({self.point}) on {self.engine}: {self.reason}"

    def as_document(self) -> dict[str, object]:
        """The same for JSON."""
        about = {"experiment": self.experiment, "point": self.point, "engine": self.engine}
        return {**about, "reason": self.reason, "failed": self.failed}


def possible(tasks: Sequence[Task]) -> tuple[list[Task], list[LeftOut]]:
    """The tasks that their engines can carry out, and the points of the others."""
    left: dict[tuple[str, int, str], LeftOut] = {}
    for task, reason in [*refused(tasks), *_without_discipline(tasks)]:
        out = LeftOut.of(task, reason)
        left.setdefault(out.key, out)
    return [task for task in tasks if LeftOut.of(task, "").key not in left], list(left.values())


def _without_discipline(tasks: Sequence[Task]) -> Iterator[tuple[Task, str]]:
    """A task of each point of which its engine does not have a queueing discipline, with the reason."""
    for engine in dict.fromkeys(task.engine for task in tasks):
        points = {(task.experiment, task.position): task for task in tasks if task.engine is engine}
        kinds = {key: dict.fromkeys(_disciplines(task.point)) for key, task in points.items()}
        lacks = lacking(engine, list(dict.fromkeys(kind for own in kinds.values() for kind in own)))
        for key, task in points.items():
            if missing := [kind for kind in kinds[key] if kind in lacks]:
                yield task, f"{missing[0]}: {lacks[missing[0]]}"


def _disciplines(point: Point) -> Iterator[str]:
    """The names of a point's queueing disciplines, those inside others included."""
    for link in point.scenario["links"]:
        for side in SIDES:
            if link[side]["rate"] is not None:
                yield from _kinds(link[side]["queue"])


def _kinds(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(kind := value.get("qdisc"), str):
            yield kind
        for inner in value.values():
            yield from _kinds(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _kinds(inner)


def stored(experiment: Experiment, engine: str, out: Path, seed: int, repeat: int | None) -> list[ExpectationResult]:
    """The experiment's expectations, judged by the runs of an engine that are stored under `out`.

    A run counts if it is undamaged and of the same scenario, whichever build of the engine made it.
    """
    if not _may_have_runs(out / experiment.name, engine):
        return []
    tasks = plan(experiment, engines(engine), out, seed=seed, repeat=repeat)
    runs = [run for task in tasks if (run := _stored(task))]
    return evaluate(experiment.expectations, runs) if runs else []


def _may_have_runs(experiment_dir: Path, engine: str) -> bool:
    """Whether a directory has the engine in its name: to look for every run of a population takes seconds."""
    return experiment_dir.is_dir() and any(f"-{engine}-" in each.name for each in experiment_dir.iterdir())


def _stored(task: Task) -> Run | None:
    if not is_run(task.directory):
        return None
    try:
        run = Run(task.directory)
        if run.meta["scenario"] != task.point.scenario:
            return None
        if damage := tables.damage(task.directory, run.meta):
            raise StoreError(damage)
    except StoreError as error:
        _log.warning("left out: %s", error)
        return None
    return run
