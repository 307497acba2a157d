"""Progress of runs on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bufferscope.running import Task, Unwatched, Watcher

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def shown(tasks: Sequence[Task], *, silent: bool) -> Iterator[Watcher]:
    """A watcher that shows how the tasks get on, for as long as the block lasts."""
    if silent:
        yield Unwatched()
    elif sys.stderr.isatty():
        with _bar(tasks) as watcher:
            yield watcher
    else:
        yield Lines(len(tasks))


class Lines:
    """One line for each tenth of the runs, for logs."""

    def __init__(self, total: int) -> None:
        """Count up to `total`."""
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def advanced(self, task: Task, now_ns: int) -> None:
        """Say nothing."""

    def finished(self, task: Task) -> None:
        """Count a run."""
        with self._lock:
            before, self._done = self._done, self._done + 1
            if self._done * 10 // self._total > before * 10 // self._total:
                print(f"{self._done} of {self._total} runs done", file=sys.stderr, flush=True)


@contextmanager
def _bar(tasks: Sequence[Task]) -> Iterator[Watcher]:
    """One bar over the simulated time of all runs."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[done]} of {task.fields[runs]} runs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, tasks)


class Bar:
    """Adds up the simulated time of all runs."""

    def __init__(self, progress: "Progress", tasks: Sequence[Task]) -> None:
        """Show the sum in a display of rich."""
        self._progress = progress
        self._total = sum(task.duration_ns for task in tasks)
        self._bar = progress.add_task("Simulating", total=self._total, done=0, runs=len(tasks))
        self._under_way: dict[Task, int] = {}
        self._finished_ns = 0
        self._finished_runs = 0
        self._lock = threading.Lock()

    def advanced(self, task: Task, now_ns: int) -> None:
        """Show how far all runs together have come."""
        with self._lock:
            self._under_way[task] = min(now_ns, task.duration_ns)
            self._show()

    def finished(self, task: Task) -> None:
        """Count a run."""
        with self._lock:
            self._under_way.pop(task, None)
            self._finished_ns += task.duration_ns
            self._finished_runs += 1
            self._show()

    def _show(self) -> None:
        completed = self._finished_ns + sum(self._under_way.values())
        self._progress.update(self._bar, completed=completed, done=self._finished_runs)
