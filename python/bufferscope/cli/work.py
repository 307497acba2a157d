"""How much of many runs is done, and how long the rest will take: by what each run is likely to cost, and what it did.

The first estimate is `cost.expected_s`. Where runs of an experiment have finished, their own times replace it.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bufferscope.running.cost import expected_s
from bufferscope.running.job import Task


@dataclass
class _Cost:
    """The runs of an experiment on an engine, in the seconds that were expected of them."""

    total: float = 0.0
    done: float = 0.0
    """Of finished runs."""
    timed: float = 0.0
    """Of the parts of finished runs whose time is known."""
    took_s: float = 0.0
    """How long those took."""


@dataclass
class _Run:
    """A run that is under way, between its first report and its last: runs that are stored together end together."""

    first: float
    """The share that was done at the first report."""
    began_s: float
    share: float
    last_s: float


class Work:
    """Adds up the work of all runs; may be called from any thread."""

    def __init__(
        self, tasks: Sequence[Task], afterwards_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is done yet. `afterwards_s` is expected to be needed when all runs are finished."""
        self.runs = len(tasks)
        self.done_runs = 0
        self._afterwards_s = afterwards_s
        self._clock = clock
        self._started_s = clock()
        self._lock = threading.Lock()
        self._expected: dict[object, float] = {}
        self._costs: dict[object, _Cost] = defaultdict(_Cost)
        self._under_way: dict[Task, _Run] = {}
        for task in tasks:
            self._costs[_kind(task)].total += self._expects(task)
        self._total = sum(cost.total for cost in self._costs.values())

    def advance(self, task: Task, now_ns: int) -> None:
        """The run has reached this simulated time."""
        with self._lock:
            share, now_s = min(now_ns / task.duration_ns, 1.0), self._clock()
            run = self._under_way.setdefault(task, _Run(share, now_s, share, now_s))
            run.share, run.last_s = share, now_s

    def finish(self, task: Task) -> None:
        """The run is stored."""
        with self._lock:
            cost, expected = self._costs[_kind(task)], self._expects(task)
            cost.done += expected
            self.done_runs += 1
            if run := self._under_way.pop(task, None):
                cost.timed += expected * (run.share - run.first)
                cost.took_s += run.last_s - run.began_s

    @property
    def share(self) -> float:
        """How much of the runs is done, from 0 to 1."""
        with self._lock:
            done = sum(cost.done for cost in self._costs.values())
            done += sum(run.share * self._expects(task) for task, run in self._under_way.items())
            return min(done / self._total, 1.0)

    def left_s(self) -> float | None:
        """The seconds until everything is done; None as long as too little is done to tell."""
        with self._lock:
            slowness = self._slowness()
            done = left = 0.0
            for kind, cost in self._costs.items():
                done += cost.done * slowness[kind]
                left += (cost.total - cost.done) * slowness[kind]
            for task, run in self._under_way.items():
                part = run.share * self._expects(task) * slowness[_kind(task)]
                done, left = done + part, left - part
            if not done:
                return None
            elapsed_s = self._clock() - self._started_s
            return elapsed_s * max(left, 0.0) / done + self._afterwards_s * slowness[None]

    def _slowness(self) -> dict[object, float]:
        """For each kind of run, and for None all together, the seconds that one expected second took."""
        timed = {kind: (cost.timed, cost.took_s) for kind, cost in self._costs.items()}
        for task, run in self._under_way.items():
            known, took_s = timed[_kind(task)]
            known += (run.share - run.first) * self._expects(task)
            timed[_kind(task)] = known, took_s + run.last_s - run.began_s
        known, took_s = (sum(each) for each in zip(*timed.values(), strict=True))
        usual = took_s / known if known else 1.0
        own = {kind: took / expected if expected > LEAST_S else usual for kind, (expected, took) in timed.items()}
        return {**own, None: usual}

    def _expects(self, task: Task) -> float:
        point = task.experiment, task.position, task.engine
        if point not in self._expected:
            self._expected[point] = expected_s(task)
        return self._expected[point]


LEAST_S = 0.2
"""The expected seconds of an experiment that must be done before its own times count."""


def _kind(task: Task) -> object:
    return task.experiment, task.engine
