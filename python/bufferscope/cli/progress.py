"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bufferscope.cli.saying import note
from bufferscope.cli.work import Work
from bufferscope.running.executors import NullWatcher, Watcher
from bufferscope.running.job import Task

if TYPE_CHECKING:
    from rich.progress import Progress

FIRST_LINE_S = 2.0
"""Jobs shorter than this get no line."""
LEAST_KNOWN_SHARE = 0.005
"""The share of the work from which on the remaining time is printed."""
LEAST_STEP = 0.1
"""A line for each tenth of the work ..."""
GROWTH = 2.0
"""... and at the latest when the elapsed time has grown by this factor since the last one."""


class Pace:
    """Decides when the next line is due: some ten or twenty of them, however long it takes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start now, by a clock in seconds."""
        self.clock = clock
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

    def may_be_due(self) -> bool:
        """Whether a line can be due by the time alone, whatever is done."""
        return self.elapsed_s >= self._last_s + FIRST_LINE_S

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self.clock() - self._started_s

    def remaining(self, share: float) -> str:
        """How long the rest will take at this pace, in words; empty as long as too little is done to tell."""
        is_known = share >= LEAST_KNOWN_SHARE
        return f", about {_duration(self.elapsed_s * (1 - share) / share)} left" if is_known else ""


@contextmanager
def shown(tasks: Sequence[Task], *, silent: bool, afterwards_s: float = 0.0) -> Iterator[Watcher]:
    """A watcher that shows the progress of the tasks for the duration of the block.

    The time left includes `afterwards_s`, which is expected to be needed when all runs are finished.
    """
    if silent:
        yield NullWatcher()
    elif sys.stderr.isatty():
        with _bar(runs=True) as progress:
            yield Bar(progress, tasks, afterwards_s)
    else:
        yield Lines(tasks, afterwards_s=afterwards_s)


@contextmanager
def steps(
    what: str, *, silent: bool = False, announced: bool = True, shares: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of a job of several steps: call the yielded function with the steps done so far and the total.

    Unless it is `announced`, a short job prints nothing. With `shares`, steps are units of work that mean nothing to a
    reader, who sees a percentage.

    >>> with steps("Drawing the figures") as step:                                              # doctest: +SKIP
    ...     for done, figure in enumerate(figures):
    ...         step(done, len(figures))
    ...         draw(figure)
    """
    if silent:
        yield lambda _done, _total: None
    elif sys.stderr.isatty():
        with _bar(runs=False, shares=shares) as progress:
            bar = progress.add_task(what, total=None)
            yield lambda done, total: progress.update(bar, completed=done, total=total)
    else:
        if announced:
            _say(what)
        yield _StepLines(what, shares=shares).step


class Lines:
    """Lines for logs: the share of the work that is done, the finished runs, and the time left."""

    def __init__(self, tasks: Sequence[Task], pace: Pace | None = None, afterwards_s: float = 0.0) -> None:
        """Nothing is done yet."""
        self._pace = pace or Pace()
        self._work = Work(tasks, afterwards_s, self._pace.clock)
        self._lock = threading.Lock()

    def advanced(self, task: Task, now_ns: int) -> None:
        """Report the progress of all runs together, if a line is due."""
        self._work.advance(task, now_ns)
        self._show()

    def finished(self, task: Task) -> None:
        """Count a run; the last one is always reported."""
        self._work.finish(task)
        self._show()
        if self._work.done_runs == self._work.runs:
            _say(f"{self._work.runs} of {self._work.runs} runs done")

    def _show(self) -> None:
        with self._lock:
            if not self._pace.may_be_due():
                return
            share = self._work.share
            if share < 1 and self._pace.due(share):
                runs = f" ({self._work.done_runs} of {self._work.runs} runs)" if self._work.runs > 1 else ""
                _say(f"{share:.0%} simulated{runs}{_left(self._work, share)}")


class Bar:
    """One bar for the work of all runs."""

    def __init__(self, progress: "Progress", tasks: Sequence[Task], afterwards_s: float = 0.0) -> None:
        """Show the sum in a display of rich."""
        self._progress = progress
        self._work = Work(tasks, afterwards_s)
        self._bar = progress.add_task("Simulating", total=1.0, done=0, runs=len(tasks), left="")

    def advanced(self, task: Task, now_ns: int) -> None:
        """Show the progress of all runs together."""
        self._work.advance(task, now_ns)
        self._show()

    def finished(self, task: Task) -> None:
        """Count a run."""
        self._work.finish(task)
        self._show()

    def _show(self) -> None:
        share = self._work.share
        left = _left(self._work, share).removeprefix(", ")
        self._progress.update(self._bar, completed=share, done=self._work.done_runs, left=left)


def _left(work: Work, share: float) -> str:
    """How long the rest will take, in words; empty as long as too little is done to tell."""
    seconds = work.left_s() if share >= LEAST_KNOWN_SHARE else None
    return "" if seconds is None else f", about {_duration(seconds)} left"


class _StepLines:
    """A line now and then for a job of several steps."""

    def __init__(self, what: str, *, shares: bool) -> None:
        self._what = what
        self._shares = shares
        self._pace = Pace()

    def step(self, done: int, total: int) -> None:
        share = done / total if total else 1.0
        if 0 < share < 1 and self._pace.due(share):
            told = f"{share:.0%}" if self._shares else f"{done} of {total}"
            _say(f"{self._what}: {told}{self._pace.remaining(share)}")


@contextmanager
def _bar(*, runs: bool, shares: bool = False) -> Iterator["Progress"]:
    """A display of rich on standard error that vanishes when all is done."""
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from bufferscope.cli.terminal import PlainConsole

    share = "{task.fields[done]} of {task.fields[runs]} runs" if runs else "{task.completed} of {task.total}"
    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False), BarColumn()]
    columns.append(TextColumn("{task.percentage:>3.0f} %"))
    columns += [] if shares else [TextColumn(share)]
    columns += [TimeElapsedColumn(), TextColumn("{task.fields[left]}") if runs else TimeRemainingColumn()]
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
