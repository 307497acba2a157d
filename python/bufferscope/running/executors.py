"""Executors, which carry out tasks: in threads of this process, or on a cluster (`bufferscope.running.cluster`)."""

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import accumulate, islice
from typing import Protocol

from bufferscope.base import machine
from bufferscope.base.errors import EngineError, InputError, check_number
from bufferscope.base.waiting import PATIENCE_S
from bufferscope.running.job import Failed, Task, perform, perform_together
from bufferscope.running.layout import partitions, sharing
from bufferscope.store.partition import Partition, directory_of
from bufferscope.store.reuse import Wanted, stored, stored_together
from bufferscope.store.run import Run
from bufferscope.store.writing import staged

MOST_JOBS = 1024

_log = logging.getLogger(__name__)

Outcomes = Mapping[Task, Run | BaseException]
"""Tasks that have ended, each with its stored run or with the error."""
Ended = MutableMapping[Task, Run | BaseException]
"""The same while further tasks are under way."""


class Watcher(Protocol):
    """Is notified of the progress of runs, from any thread."""

    def advanced(self, task: Task, now_ns: int) -> None:
        """The run has reached this simulated time."""

    def finished(self, task: Task) -> None:
        """The run is stored."""


class NullWatcher:
    """A watcher that does nothing."""

    def advanced(self, task: Task, now_ns: int) -> None:
        """Do nothing."""

    def finished(self, task: Task) -> None:
        """Do nothing."""


class Executor(Protocol):
    """Carries out tasks."""

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise `EngineError` if one of the tasks can't be carried out."""

    def carry_out(self, tasks: Sequence[Task], watcher: Watcher, ended: Ended) -> None:
        """Carry out the tasks, and add each to `ended` when it has ended, so that they are there after Ctrl-C, too."""


class Threads:
    """Carries out tasks in threads of this process; real-time runs after all others, one at a time."""

    def __init__(self, jobs: int | None = None, layout: str = "auto") -> None:
        """Run `jobs` tasks at a time; by default one per processor, or fewer if the memory does not suffice.

        Raises `InputError` for an impossible number.
        """
        self._jobs = jobs
        self._layout = layout
        if jobs is not None:
            check_number("jobs", jobs, 1, MOST_JOBS)

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise `EngineError` for the first task whose point its engine can't run, with the number of others.

        Raises `InputError` if the layout does not suit the tasks.
        """
        sharing(tasks, self._layout)
        refuse(refused(tasks), tasks)

    def carry_out(self, tasks: Sequence[Task], watcher: Watcher, ended: Ended) -> None:
        """Carry out the tasks; Ctrl-C stops the running ones."""
        ended.update(_in_partitions([task for task in tasks if task.reuse], watcher))
        left = [task for task in tasks if task not in ended]
        shared = sharing(tasks, self._layout)
        groups = [*partitions([task for task in left if task in shared])]
        groups += [[task] for task in left if task not in shared and not task.engine.real_time]
        alone = [[task] for task in left if task.engine.real_time]
        stop = threading.Event()
        together = [task for group in groups for task in group]
        for part, workers in ((groups, self._jobs or _fitting(together)), (alone, 1)):
            futures: list[tuple[list[Task], Future[Outcomes]]] = []
            with ThreadPoolExecutor(workers, thread_name_prefix="run") as pool:
                try:
                    for group in part:
                        run = _run_together if group[0] in shared else _run_alone
                        futures.append((group, pool.submit(run, group, watcher, stop)))
                    for _, future in futures:
                        while not future.done():
                            wait([future], PATIENCE_S)
                except KeyboardInterrupt:
                    stop.set()
                    pool.shutdown(cancel_futures=True)
                    raise
                finally:
                    for group, future in futures:
                        if not future.cancelled():
                            error = future.exception()
                            ended.update(dict.fromkeys(group, error) if error else future.result())


def _fitting(tasks: Sequence[Task]) -> int:
    """The number of jobs: one per processor, or fewer if the memory does not suffice for the largest tasks together."""
    cpus, available = machine.cpus(), machine.available_bytes()
    points = Counter((task.experiment, task.engine, task.position) for task in tasks)
    needs = [
        (engine.memory_bytes(experiment.points[position]), count)
        for (experiment, engine, position), count in points.items()
    ]
    each = (need for need, count in sorted(needs, reverse=True) for _ in range(count))
    largest = list(islice(each, cpus))
    if available is None:
        return cpus
    fitting = max(1, sum(together <= available for together in accumulate(largest)))
    if fitting >= len(largest):
        return cpus
    _log.warning(
        "note: %d at a time instead of %d: %d runs may need %s of memory, and this machine has %s left; "
        "--jobs sets another number",
        *(fitting, len(largest), len(largest), machine.gigabytes(sum(largest)), machine.gigabytes(available)),
    )
    return fitting


def refused(tasks: Sequence[Task]) -> list[tuple[Task, str]]:
    """For each point that its engine can't run, one of its tasks and the reason."""
    found: list[tuple[Task, str]] = []
    for engine in dict.fromkeys(task.engine for task in tasks):
        own = {(task.experiment, task.position): task for task in tasks if task.engine is engine}
        reasons = engine.refusals([task.point for task in own.values()])
        found += [(task, reason) for task, reason in zip(own.values(), reasons, strict=True) if reason]
    return found


def refuse(found: Sequence[tuple[Task, str]], tasks: Sequence[Task]) -> None:
    """Raise `EngineError` with the reason for the first of the tasks that can't be carried out, if there is one.

    The error says how to run the points that can.
    """
    if found:
        task, reason = found[0]
        more = f" (and {len(found) - 1} more points can't run)" if len(found) > 1 else ""
        more += how_to_run_others([task for task, _ in found], tasks)
        raise EngineError(f"{task.experiment.name} ({task.point}) on {task.engine.name}: {reason}{more}")


def how_to_run_others(failed: Sequence[Task], tasks: Sequence[Task]) -> str:
    """What chooses points of the first failed task's experiment of which no task failed; empty if there are none."""
    experiment = failed[0].experiment
    bad = {task.position for task in failed if task.experiment is experiment}
    good = {task.position for task in tasks if task.experiment is experiment} - bad
    if not good:
        return ""

    def values(positions: set[int], path: str) -> set[str]:
        return {experiment.points[position].values[path] for position in positions}

    distinct = [path for path in experiment.swept if values(bad, path).isdisjoint(values(good, path))]
    chosen = experiment.points[min(good)].values
    options = " ".join(f"--only '{path}={chosen[path]}'" for path in distinct[:1] or chosen)
    return f"; --only chooses others, as in {options}"


@contextmanager
def executor(jobs: int | None = None, cluster: str | None = None, layout: str = "auto") -> Iterator[Executor]:
    """`jobs` threads of this process, or a cluster: `tcp://HOST:PORT`, `local` or `local:N`.

    Raises `InputError` for wrong arguments or both together, and `EngineError` for a cluster that does not answer.
    """
    if cluster is None:
        yield Threads(jobs, layout)
        return
    if jobs is not None:
        raise InputError(f"--jobs {jobs}: only for runs on this machine; on a cluster, its workers' threads decide")
    if layout == "sweep":
        raise InputError("--layout sweep: not with --cluster; the runs of a cluster have directories of their own")
    from bufferscope.running.cluster import connected

    with connected(cluster) as there:
        yield there


def _in_partitions(tasks: Sequence[Task], watcher: Watcher) -> dict[Task, Run]:
    """The stored runs in partitions that have the same results as these tasks would have."""
    found: dict[Task, Run] = {}
    for experiment_dir in dict.fromkeys(task.experiment_dir for task in tasks):
        own = {task.name: task for task in tasks if task.experiment_dir == experiment_dir}

        def wanted(name: str, own: Mapping[str, Task] = own) -> Wanted | None:
            task = own.get(name)
            return Wanted(task.engine.identity(), task.point.scenario, task.about) if task else None

        found |= {own[name]: run for name, run in stored_together(experiment_dir, wanted).items()}
    for task in found:
        watcher.finished(task)
    return found


def _run_alone(tasks: Sequence[Task], watcher: Watcher, stop: threading.Event) -> Outcomes:
    """Carry out one task, in a thread of its own, and store its run in a directory."""
    (task,) = tasks
    identity = task.engine.identity()
    if task.reuse and (run := stored(task.directory, identity, task.point.scenario, task.about())):
        watcher.finished(task)
        return {task: run}

    def progress(now_ns: int, _duration_ns: int) -> bool:
        watcher.advanced(task, now_ns)
        return not stop.is_set()

    with staged(task.directory) as staging:
        perform(task, identity, staging, progress)
    watcher.finished(task)
    return {task: Run(task.directory)}


def _run_together(tasks: Sequence[Task], watcher: Watcher, stop: threading.Event) -> Outcomes:
    """Carry out tasks one after the other, in a thread of their own, and store their runs in a partition.

    If a task fails, the others are carried out again without it, so that their runs are stored.
    """
    ended: dict[Task, Run | BaseException] = {}
    identity = tasks[0].engine.identity()
    for task in tasks:
        if task.reuse and (run := stored(task.directory, identity, task.point.scenario, task.about())):
            ended[task] = run

    def progress(task: Task, now_ns: int) -> bool:
        watcher.advanced(task, now_ns)
        return not stop.is_set()

    while left := [task for task in tasks if task not in ended]:
        names = [task.name for task in left]
        directory = directory_of(left[0].experiment_dir, left[0].engine.name, names)
        try:
            with staged(directory) as staging:
                perform_together(left, identity, staging, progress)
        except Failed as failure:
            ended[failure.task] = failure.error
        else:
            ended.update(zip(left, Run.all_in(Partition(directory)), strict=True))
    for task in tasks:
        if isinstance(ended[task], Run):
            watcher.finished(task)
    return ended
