"""Executors, which carry out tasks: in threads of this process, or on a cluster (`bufferscope.cluster`)."""

import logging
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import accumulate
from typing import Protocol

from bufferscope import machine
from bufferscope.errors import EngineError, InputError, check_number
from bufferscope.job import Task, perform
from bufferscope.store.reuse import stored
from bufferscope.store.run import Run
from bufferscope.store.writing import staged
from bufferscope.waiting import PATIENCE_S

MOST_JOBS = 1024

_log = logging.getLogger(__name__)

Ended = MutableMapping[Task, Run | BaseException]
"""The tasks that have ended, each with its stored run or with the error."""


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


class Executor(Protocol):
    """Carries out tasks."""

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise `EngineError` if one of the tasks can't be carried out."""

    def carry_out(self, tasks: Sequence[Task], watcher: Watcher, reuse: bool, ended: Ended) -> None:
        """Carry out the tasks, and add each to `ended` when it has ended, so that they are there after Ctrl-C, too.

        With `reuse`, a stored run is taken instead if a new run would give the same records.
        """


class Threads:
    """Carries out tasks in threads of this process; real-time runs after all others, one at a time."""

    def __init__(self, jobs: int | None = None) -> None:
        """Run `jobs` tasks at a time; by default one per processor, or fewer if memory does not hold so many.

        Raises `InputError` for an impossible number.
        """
        self._jobs = jobs
        if jobs is not None:
            check_number("jobs", jobs, 1, MOST_JOBS)

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise `EngineError` for the first task whose point its engine can't run, with the number of others."""
        refused: list[tuple[Task, str]] = []
        for engine in dict.fromkeys(task.engine for task in tasks):
            own = {(task.experiment, task.position): task for task in tasks if task.engine is engine}
            reasons = engine.refusals([task.point for task in own.values()])
            refused += [(task, reason) for task, reason in zip(own.values(), reasons, strict=True) if reason]
        refuse(refused)

    def carry_out(self, tasks: Sequence[Task], watcher: Watcher, reuse: bool, ended: Ended) -> None:
        """Carry out the tasks; Ctrl-C stops the running ones."""
        stop = threading.Event()
        together = [task for task in tasks if not task.engine.real_time]
        alone = [task for task in tasks if task.engine.real_time]
        for group, workers in ((together, self._jobs or _fitting(together)), (alone, 1)):
            futures: dict[Task, Future[Run]] = {}
            with ThreadPoolExecutor(workers, thread_name_prefix="run") as pool:
                try:
                    for task in group:
                        futures[task] = pool.submit(_run, task, watcher, stop, reuse)
                    for future in futures.values():
                        while not future.done():
                            wait([future], PATIENCE_S)
                except KeyboardInterrupt:
                    stop.set()
                    pool.shutdown(cancel_futures=True)
                    raise
                finally:
                    begun = {task: future for task, future in futures.items() if not future.cancelled()}
                    ended.update({task: future.exception() or future.result() for task, future in begun.items()})


def _fitting(tasks: Sequence[Task]) -> int:
    """One job per processor; if memory would not hold the largest tasks at the same time, as many as it holds."""
    cpus, available = machine.cpus(), machine.available_bytes()
    needs = {(task.experiment, task.engine, task.position): task.engine.memory_bytes(task.point) for task in tasks}
    largest = sorted((needs[task.experiment, task.engine, task.position] for task in tasks), reverse=True)[:cpus]
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


def refuse(refused: Sequence[tuple[Task, str]]) -> None:
    """Raise `EngineError` with the reason for the first of the tasks that can't be carried out, if there is one."""
    if refused:
        task, reason = refused[0]
        more = f" (and {len(refused) - 1} more points can't run)" if len(refused) > 1 else ""
        raise EngineError(f"{task.experiment.name} ({task.point}) on {task.engine.name}: {reason}{more}")


@contextmanager
def executor(jobs: int | None = None, cluster: str | None = None) -> Iterator[Executor]:
    """`jobs` threads of this process, or a cluster: `tcp://HOST:PORT`, `local` or `local:N`.

    Raises `InputError` for wrong arguments or both together, and `EngineError` for a cluster that does not answer.
    """
    if cluster is None:
        yield Threads(jobs)
        return
    if jobs is not None:
        raise InputError(f"--jobs {jobs}: only for runs on this machine; on a cluster, its workers' threads decide")
    from bufferscope.cluster import connected

    with connected(cluster) as there:
        yield there


def _run(task: Task, watcher: Watcher, stop: threading.Event, reuse: bool) -> Run:
    """Carry out one task, in a thread of its own."""
    identity = task.engine.identity()
    if reuse and (run := stored(task.directory, identity, task.point.scenario, task.about())):
        watcher.finished(task)
        return run

    def progress(now_ns: int, _duration_ns: int) -> bool:
        watcher.advanced(task, now_ns)
        return not stop.is_set()

    with staged(task.directory) as place:
        perform(task, identity, place, progress)
    watcher.finished(task)
    return Run(task.directory)
