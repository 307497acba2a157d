"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bufferscope.cli.saying import note
from bufferscope.executors import Unwatched, Watcher
from bufferscope.job import Task

if TYPE_CHECKING:
    from rich.progress import Progress

FIRST_LINE_S = 2.0
"""Jobs shorter than this get no line."""
LEAST_KNOWN_SHARE = 0.005
"""The share of the work from which the time left is told."""
LEAST_STEP = 0.1
"""A line for each tenth of the work ..."""
GROWTH = 2.0
"""... and at the latest when the elapsed time has grown by this factor since the last one."""


class Pace:
    """Decides when the next line is due: some ten or twenty of them, however long it takes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start now, by a clock in seconds."""
        self._clock = clock
        self._started_s = clock()
        self._last_s = 0.0
        self._last_share = 0.0

    def due(self, share: float) -> bool:
        """Whether a line is due now that this share of the work, from 0 to 1, is done; if so, schedule the next one."""
        elapsed_s = self.elapsed_s
        if self._last_s == 0:
            due = elapsed_s >= FIRST_LINE_S
        else:
            advanced = share > self._last_share + 0.999 * LEAST_STEP and elapsed_s >= self._last_s + FIRST_LINE_S
            due = advanced or elapsed_s >= GROWTH * self._last_s
        if due:
            self._last_s, self._last_share = elapsed_s, share
        return due

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._started_s

    def remaining(self, share: float) -> str:
        """How long the rest will take at this pace, in words; empty as long as too little is done to tell."""
        is_known = share >= LEAST_KNOWN_SHARE
        return f", about {_duration(self.elapsed_s * (1 - share) / share)} left" if is_known else ""


@contextmanager
def shown(tasks: Sequence[Task], *, silent: bool) -> Iterator[Watcher]:
    """A watcher that shows the progress of the tasks for the duration of the block."""
    if silent:
        yield Unwatched()
    elif sys.stderr.isatty():
        with _bar(runs=True) as progress:
            yield Bar(progress, tasks)
    else:
        yield Lines(tasks)


@contextmanager
def steps(what: str, *, silent: bool = False, announced: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of a job of several steps: call the yielded function with the steps done so far and the total.

    Unless it is `announced`, a short job prints nothing.

    >>> with steps("Drawing the figures") as step:                                              # doctest: +SKIP
    ...     for done, figure in enumerate(figures):
    ...         step(done, len(figures))
    ...         draw(figure)
    """
    if silent:
        yield lambda _done, _total: None
    elif sys.stderr.isatty():
        with _bar(runs=False) as progress:
            bar = progress.add_task(what, total=None)
            yield lambda done, total: progress.update(bar, completed=done, total=total)
    else:
        if announced:
            _say(what)
        yield _StepLines(what).step


class Work:
    """Adds up the simulated time of all runs; may be called from any thread."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        """Nothing is done yet."""
        self.total_ns = sum(task.duration_ns for task in tasks)
        self.runs = len(tasks)
        self.done_runs = 0
        self._done_ns = 0
        self._under_way: dict[Task, int] = {}
        self._lock = threading.Lock()

    def advance(self, task: Task, now_ns: int) -> int:
        """The run has reached this simulated time; returns the progress of all runs together."""
        with self._lock:
            self._under_way[task] = min(now_ns, task.duration_ns)
            return self._sum_ns()

    def finish(self, task: Task) -> int:
        """The run is stored; returns the progress of all runs together."""
        with self._lock:
            self._under_way.pop(task, None)
            self._done_ns += task.duration_ns
            self.done_runs += 1
            return self._sum_ns()

    def _sum_ns(self) -> int:
        return self._done_ns + sum(self._under_way.values())


class Lines:
    """Lines for logs: the share of the simulated time, the finished runs, and the time left."""

    def __init__(self, tasks: Sequence[Task], pace: Pace | None = None) -> None:
        """Nothing is done yet."""
        self._work = Work(tasks)
        self._pace = pace or Pace()
        self._lock = threading.Lock()

    def advanced(self, task: Task, now_ns: int) -> None:
        """Report the progress of all runs together, if a line is due."""
        self._show(self._work.advance(task, now_ns))

    def finished(self, task: Task) -> None:
        """Count a run; the last one is always reported."""
        self._show(self._work.finish(task))
        if self._work.done_runs == self._work.runs:
            _say(f"{self._work.runs} of {self._work.runs} runs done")

    def _show(self, done_ns: int) -> None:
        share = done_ns / self._work.total_ns
        with self._lock:
            if share < 1 and self._pace.due(share):
                runs = f" ({self._work.done_runs} of {self._work.runs} runs)" if self._work.runs > 1 else ""
                _say(f"{share:.0%} simulated{runs}{self._pace.remaining(share)}")


class Bar:
    """One bar for the simulated time of all runs."""

    def __init__(self, progress: "Progress", tasks: Sequence[Task]) -> None:
        """Show the sum in a display of rich."""
        self._progress = progress
        self._work = Work(tasks)
        self._bar = progress.add_task("Simulating", total=self._work.total_ns, done=0, runs=len(tasks))

    def advanced(self, task: Task, now_ns: int) -> None:
        """Show the progress of all runs together."""
        self._show(self._work.advance(task, now_ns))

    def finished(self, task: Task) -> None:
        """Count a run."""
        self._show(self._work.finish(task))

    def _show(self, done_ns: int) -> None:
        self._progress.update(self._bar, completed=done_ns, done=self._work.done_runs)


class _StepLines:
    """A line now and then for a job of several steps."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._pace = Pace()

    def step(self, done: int, total: int) -> None:
        share = done / total if total else 1.0
        if 0 < share < 1 and self._pace.due(share):
            _say(f"{self._what}: {done} of {total}{self._pace.remaining(share)}")


@contextmanager
def _bar(*, runs: bool) -> Iterator["Progress"]:
    """A display of rich on standard error that vanishes when all is done."""
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from bufferscope.cli.terminal import PlainConsole

    share = "{task.fields[done]} of {task.fields[runs]} runs" if runs else "{task.completed} of {task.total}"
    columns: tuple[ProgressColumn, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn(share),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True) as progress:
        yield progress


def _say(line: str) -> None:
    note(line)


def _duration(seconds: float) -> str:
    """A length of time, rounded as an estimate should be.

    >>> _duration(7.4), _duration(200), _duration(20_000)
    ('7 s', '3 min', '5.6 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
