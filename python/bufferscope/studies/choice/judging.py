"""Which queue to take: the smallest that keeps the goodput, and the discipline that serves the call best."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.base.attach import attached
from bufferscope.model.disciplines import PURE_LIMITS
from bufferscope.model.network import probers, traffic_named
from bufferscope.stats.estimate import Estimate, estimate
from bufferscope.stats.spread import reach
from bufferscope.studies.choice.bottleneck import Bottleneck
from bufferscope.studies.choice.candidates import QueueCandidate
from bufferscope.studies.choice.study import Study

if TYPE_CHECKING:
    from bufferscope.results.result import Result
    from bufferscope.store.run import Run

KEPT = 0.98
"""The share of the largest goodput that a queue must keep which only limits its length."""
LEAST = 0.9
"""The share that every other discipline must keep, however short its queue is."""
USUAL = ("cake", "fq_codel")
"""The disciplines to take where others are only as good, the first of them first, as in `bufferscope fix`."""
DEVICE = "DEV"
"""Stands for the device in a command."""


@dataclass(frozen=True)
class MeasuredCandidate:
    """A candidate with what it did; each value is the mean of the repetitions with its uncertainty."""

    candidate: QueueCandidate
    """The queue that was tried."""
    tc: str
    """The queue as arguments of `tc`; empty if Linux cannot be set to it."""
    goodput_mbit: Estimate
    """Of all traffic whose data crosses the port."""
    rtt_p50_ms: Estimate
    """The median of the pings; infinite if losses hide it."""
    rtt_p95_ms: Estimate
    """Of the pings that cross the port; infinite if losses hide it."""
    call_mos: Estimate | None = None
    """The mean opinion score of the worst call; None without a call."""
    elsewhere_mbit: Estimate | None = None
    """The goodput of all other traffic, such as that of the other direction; None without any."""

    @property
    def name(self) -> str:
        """The queue's name in tables and figures."""
        return self.candidate.name


@dataclass(frozen=True)
class Criterion:
    """Something in which candidates are compared."""

    name: str
    of: Callable[[MeasuredCandidate], Estimate | None]
    larger_is_better: bool
    noticed: Callable[[float], float]
    """The least noticeable difference from a value."""

    def badness(self, measured: MeasuredCandidate) -> float:
        """A number that is smaller for better candidates; infinite if it is hidden or not measured."""
        found = self.of(measured)
        if found is None or math.isnan(found.mean):
            return math.inf
        return -found.mean if self.larger_is_better else found.mean

    def alike(self, one: MeasuredCandidate, other: MeasuredCandidate) -> bool:
        """Whether the difference is not noticeable, or within the scatter of the repetitions."""
        first, second = self.of(one), self.of(other)
        if first is None or second is None:
            return first is second
        if first.mean == second.mean:
            return True
        difference = abs(first.mean - second.mean)
        if not math.isfinite(difference):
            return False
        chance = reach(first, second)
        return difference <= max(self.noticed(second.mean), 0.0 if math.isnan(chance) else chance)


CALL = Criterion("call", lambda measured: measured.call_mos, True, lambda _: 0.05)
"""A twentieth of a point of the mean opinion score."""
TAIL = Criterion("latency", lambda measured: measured.rtt_p95_ms, False, lambda ms: max(1.0, 0.02 * ms))
MEDIAN = Criterion("latency", lambda measured: measured.rtt_p50_ms, False, TAIL.noticed)


@dataclass(frozen=True)
class ChoiceVerdict:
    """What follows from the measurements."""

    smallest: MeasuredCandidate | None
    """The smallest of the tail-drop sizes that keeps the goodput; None if none of them does."""
    best: MeasuredCandidate
    """The candidate to take: one of those that measured best."""
    as_good: tuple[MeasuredCandidate, ...]
    """Those whose differences from it are too small to notice, or within the scatter of the repetitions."""
    rivals: tuple[MeasuredCandidate, ...]
    """Those that competed."""
    criteria: tuple[Criterion, ...]
    """In what the candidates were compared, the most important first."""
    most_mbit: float
    """The largest goodput of all candidates."""
    most_elsewhere_mbit: float
    """The largest goodput of the traffic that does not cross the port, with the candidates that keep the former; 0
    without such traffic."""


def judge(measured: Sequence[MeasuredCandidate]) -> ChoiceVerdict:
    """The verdict on candidates, of which there is at least one.

    Only those compete that keep nine tenths of the largest goodput. Disciplines that only limit the queue's length must
    keep 98 % of it, and of the sizes of tail drop only the smallest that does competes: the shorter such a queue is,
    the lower are latency and goodput, without end. None may cost the traffic that does not cross the port a tenth of
    its goodput: acknowledgements that wait or are dropped slow down the other direction. The others are compared by
    their calls, if there are any, and those with calls alike by the 95th percentile of the round-trip times; if losses
    hide that of all candidates, by the median. Of those that are alike in all of that, the first of `USUAL` is the one
    to take: digits below the scatter decide nothing.
    """
    most = max(each.goodput_mbit.mean for each in measured)
    sizes = [each for each in measured if each.candidate.is_size]
    keeping = [each for each in measured if each.goodput_mbit.mean >= _asked(each) * most] or list(measured)
    most_elsewhere = max(map(_elsewhere, keeping))
    keeping = [each for each in keeping if _elsewhere(each) >= LEAST * most_elsewhere]
    enough = [each for each in sizes if each in keeping and each.goodput_mbit.mean >= KEPT * most]
    smallest = min(enough, key=_limit, default=None)
    rivals = [each for each in keeping if each is smallest or not each.candidate.is_size] or keeping
    times = TAIL if any(math.isfinite(TAIL.badness(each)) for each in rivals) else MEDIAN
    criteria = (CALL, times) if any(each.call_mos for each in measured) else (times,)
    left, best = rivals, rivals[0]
    for criterion in criteria:
        best = min(left, key=criterion.badness)
        left = [each for each in left if criterion.alike(each, best)]
    best = next((each for kind in USUAL for each in left if each.candidate.queue.get("qdisc") == kind), best)
    return ChoiceVerdict(
        smallest, best, tuple(each for each in left if each is not best), tuple(rivals), criteria, most, most_elsewhere
    )


def _elsewhere(measured: MeasuredCandidate) -> float:
    return measured.elsewhere_mbit.mean if measured.elsewhere_mbit else 0.0


def _asked(measured: MeasuredCandidate) -> float:
    """The share of the largest goodput that a discipline must keep."""
    return KEPT if measured.candidate.queue.get("qdisc") in PURE_LIMITS else LEAST


def _limit(measured: MeasuredCandidate) -> int:
    return int(str(measured.candidate.queue["limit"]).removesuffix("p"))


class Choice:
    """What `bufferscope.choose` returns: every queue that was tried, and which one to take."""

    def __init__(self, study: Study, result: "Result") -> None:
        """Measure the runs of a study.

        Parameters
        ----------
        study
            What was tried, and where.
        result
            The runs, one point for each queue.
        """
        self.study = study
        self.result = result
        """The runs, one point for each queue; `result.figures["trade_offs"]` shows them together."""

    @property
    def bottleneck(self) -> Bottleneck:
        """The bottleneck."""
        return self.study.bottleneck

    @property
    def notes(self) -> tuple[str, ...]:
        """What was added to the experiment, or left out."""
        return self.study.notes

    @cached_property
    def measured(self) -> tuple[MeasuredCandidate, ...]:
        """Every queue with what it did, in the order in which they were tried."""
        found = zip(self.study.candidates, self.study.commands, strict=True)
        return tuple(_measured(candidate, tc, self._runs(candidate), self.bottleneck) for candidate, tc in found)

    @cached_property
    def verdict(self) -> ChoiceVerdict:
        """Which one to take, and what was compared."""
        return judge(self.measured)

    @property
    def best(self) -> MeasuredCandidate:
        """The queue to take."""
        return self.verdict.best

    @property
    def smallest(self) -> MeasuredCandidate | None:
        """The smallest tail-drop queue that keeps 98 % of the largest goodput."""
        return self.verdict.smallest

    @property
    def as_good(self) -> tuple[MeasuredCandidate, ...]:
        """The queues whose differences from the best are too small to notice, or within the repetitions' scatter."""
        return self.verdict.as_good

    @property
    def own(self) -> MeasuredCandidate | None:
        """The queue of the experiment's file, if it is among those tried."""
        return next((each for each in self.measured if each.candidate.is_own), None)

    @property
    def command(self) -> str | None:
        """The command that sets the best queue on a device; None if Linux cannot be set to it."""
        return f"tc qdisc replace dev {DEVICE} root {self.best.tc}" if self.best.tc else None

    @property
    def repetitions(self) -> int:
        """Runs of each queue."""
        return min(each.goodput_mbit.n for each in self.measured)

    def report(self, path: str | Path, *, stills: bool = False) -> Path:
        """Write a page with the figures and tables.

        Parameters
        ----------
        path
            The directory for `index.html`, which is made if needed.
        stills
            Draw each chart also as a picture, for paper and as files in `figures/`; see `bs.report.build`.

        Returns
        -------
        pathlib.Path
            The page.
        """
        from bufferscope.studies.choice.fmt import opening

        page: Path = attached("report")([self.result], path, opening=opening(self), stills=stills)
        return page

    def _runs(self, candidate: QueueCandidate) -> "list[Run]":
        return [run for run in self.result.runs if run.point[self.bottleneck.key] == candidate.name]

    def __repr__(self) -> str:
        return f"Choice({self.bottleneck.port.name!r}: {self.best.name!r} of {len(self.measured)} queues)"


def _measured(candidate: QueueCandidate, tc: str, runs: "Sequence[Run]", bottleneck: Bottleneck) -> MeasuredCandidate:
    calls = [f"voip.{entry['name']}.mos" for entry in traffic_named(runs[0].scenario, "voip")]
    worst = [min(known) for run in runs if (known := [run.metrics[name] for name in calls if name in run.metrics])]
    return MeasuredCandidate(
        candidate,
        tc,
        _goodput(runs, bottleneck.carried),
        _round_trip(runs, bottleneck, "p50_ms"),
        _round_trip(runs, bottleneck, "p95_ms"),
        estimate(worst) if worst else None,
        _goodput(runs, bottleneck.elsewhere) if bottleneck.elsewhere else None,
    )


def _goodput(runs: "Sequence[Run]", traffic: Sequence[str]) -> Estimate:
    """The goodput of these entries together."""
    return estimate([sum(run.metrics.get(f"goodput.{name}_mbit", 0.0) for name in traffic) for run in runs])


def _round_trip(runs: "Sequence[Run]", bottleneck: Bottleneck, what: str) -> Estimate:
    """The longest such time of the pings that cross the port; infinite if one of them has no answer.

    Pings that go elsewhere, as to the gateway, do not wait in the queue that is chosen.
    """
    is_alone = len(probers(runs[0].scenario)) == 1
    names = [f"rtt.{what}"] if is_alone else [f"rtt.{name}.{what}" for name in bottleneck.probers]
    return estimate([max(run.metrics.get(name, math.inf) for name in names) for run in runs])
