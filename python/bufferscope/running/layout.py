"""How runs are stored: each in a directory of its own, or many together in partitions."""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from bufferscope.base.errors import InputError
from bufferscope.model.network import NANOSECONDS
from bufferscope.running.job import Task

StorageLayout = Literal["auto", "single", "sweep"]
"""`single`: a directory for each run. `sweep`: partitions of many runs. `auto`: whichever suits the tasks."""
LAYOUTS: tuple[StorageLayout, ...] = get_args(StorageLayout)
LEAST_RUNS = 200
"""With fewer runs of an experiment on an engine, `auto` gives each a directory of its own."""
LONGEST_S = 60
"""`auto` stores an experiment's runs together only if none simulates more than this: beside a longer run, a directory
costs little."""
MOST_RUNS = 250
"""The most runs of a partition."""
MOST_S = 3600
"""The most simulated seconds of a partition, unless one run takes more: this bounds the size of its files. It
counts only runs that record samples or drops, because the other tables are small."""
LARGE = frozenset({"flows", "queues", "drops", "sojourns"})
"""The tables whose size depends on the simulated time."""
LEAST_PARTITIONS = 8
"""A sweep is divided into about this many partitions or more, so that all processors are used and an interruption loses
little."""


def sharing(tasks: Sequence[Task], layout: str) -> set[Task]:
    """The tasks whose runs are stored in partitions; each of the others gets a directory.

    Only the simulator's runs can be stored together: with other engines, the cost of a directory does not matter.
    Raises `InputError` for an unknown layout, and for `sweep` with another engine.
    """
    if layout not in LAYOUTS:
        raise InputError(f"--layout: found {layout!r}; allowed: {', '.join(LAYOUTS)}")
    able = [task for task in tasks if task.engine.batch_runner]
    if layout == "sweep" and len(able) < len(tasks):
        unable = next(task.engine.name for task in tasks if not task.engine.batch_runner)
        raise InputError(f"--layout sweep: only for the engine sim; runs of {unable} have directories of their own")
    if layout != "auto":
        return set(able) if layout == "sweep" else set()
    return {task for own in _alike(able) if _is_large(own) for task in own}


def _alike(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks of each experiment and engine, in their order: only these can share a partition."""
    alike: dict[object, list[Task]] = {}
    for task in tasks:
        alike.setdefault((task.experiment_dir, task.engine), []).append(task)
    return list(alike.values())


def _is_large(tasks: Sequence[Task]) -> bool:
    return len(tasks) >= LEAST_RUNS and all(task.duration_ns <= LONGEST_S * NANOSECONDS for task in tasks)


def _is_sampled(task: Task) -> bool:
    recorded = task.experiment.points[task.position].scenario.get("record", LARGE)
    return not LARGE.isdisjoint(recorded)


def partitions(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """The tasks in their order, in groups of limited size; a group has tasks of one experiment and one engine."""
    most = max(1, min(MOST_RUNS, -(-len(tasks) // LEAST_PARTITIONS)))
    for own in _alike(tasks):
        group: list[Task] = []
        duration_ns = 0
        for task in own:
            own_ns = task.duration_ns if _is_sampled(task) else 0
            if group and (len(group) == most or duration_ns + own_ns > MOST_S * NANOSECONDS):
                yield group
                group, duration_ns = [], 0
            group.append(task)
            duration_ns += own_ns
        yield group
