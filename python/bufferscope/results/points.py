"""What the runs of a point measure: a metric's mean over the repetitions, and the ratio of two means."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bufferscope.model.expectations import MetricPosition
from bufferscope.results.shared import SharedRepetition, which_share
from bufferscope.results.verdicts import is_in

if TYPE_CHECKING:
    from bufferscope.metrics import Estimate, MetricError, Value
    from bufferscope.store.run import Run


class PointRuns:
    """The runs of a point."""

    def __init__(self) -> None:
        self._all: list[Run] = []
        self._groups: dict[str | None, list[Run]] = {}
        self._shared: list[str | None] | None = None

    def add(self, run: "Run") -> None:
        self._all.append(run)
        self._groups.setdefault(run.facts.group, []).append(run)

    def of(self, group: str | None) -> "Sequence[Run]":
        """Those of a group of the population; all without a group."""
        return self._all if group is None else self._groups.get(group, ())

    def shared(self) -> list[str | None]:
        """For each run, which flows share a flow queue. Empty for members of a population, which are no repetitions."""
        if self._all[0].facts.group is not None:
            return []
        if self._shared is None:
            self._shared = [which_share(run) for run in self._all]
        return self._shared


@dataclass(frozen=True)
class MeasuredPoint:
    """A point with the values of one metric in its runs, or with the errors of runs that lack the metric."""

    values: Mapping[str, str]
    measured: "Sequence[Value | MetricError]"
    share_in: tuple[float, float] | None
    are_members: bool
    """Whether the runs are members of a population. Some of them may lack the metric, because nothing came back."""
    seeds: Sequence[int] = ()
    shared: Sequence[str | None] = ()
    """For each run, which flows share a flow queue in it; None if none do. Empty for members of a population."""

    @property
    def is_chance(self) -> bool:
        """Whether flows share a queue in fewer than half of the runs; otherwise, it is a property of the point."""
        return 0 < 2 * len([why for why in self.shared if why]) < len(self.shared)

    @property
    def judged(self) -> "Sequence[Value | MetricError]":
        """What the measurement is made from: without the repetitions in which flows share a queue by chance."""
        if not self.is_chance:
            return self.measured
        return [value for value, why in zip(self.measured, self.shared, strict=True) if not why]

    @property
    def apart(self) -> Iterator[SharedRepetition]:
        """The repetitions in which flows share a queue."""
        if not self.shared:
            return
        for value, seed, why in zip(self.measured, self.seeds, self.shared, strict=True):
            if why:
                measured = None if isinstance(value, Exception) else value.number
                yield SharedRepetition(seed, measured, not self.is_chance, why)

    @property
    def estimate(self) -> "Estimate":
        from bufferscope.stats.estimate import estimate

        numbers = []
        for value in self.judged:
            if not isinstance(value, Exception):
                numbers.append(value.number)
            elif not self.are_members or (value is self.judged[-1] and not numbers):
                raise value
        if self.share_in is not None:
            numbers = [float(is_in(self.share_in, number)) for number in numbers]
        return estimate(numbers)


@dataclass(frozen=True)
class MeasuredValue:
    """A point's mean, or a ratio of two; `reach` is NaN if it is unknown."""

    value: float
    reach: float

    def over(self, reference: "MeasuredValue") -> "MeasuredValue":
        """The ratio; NaN, which lies in no band, if both are hidden or both are zero."""
        if reference.value == 0:
            return MeasuredValue(math.inf if self.value > 0 else math.nan, math.nan)
        ratio = self.value / reference.value
        return MeasuredValue(ratio, math.hypot(self.reach, ratio * reference.reach) / abs(reference.value))

    @property
    def known_reach(self) -> float | None:
        return self.reach if math.isfinite(self.reach) else None


def measure(position: MetricPosition, points: Mapping[int, MeasuredPoint]) -> MeasuredValue | None:
    """The metric's mean over a point's runs, divided by another's if `position` names one; None without such runs."""
    measured = _mean(position["point"], points)
    if measured is None or position["relative_to"] is None:
        return measured
    reference = _mean(position["relative_to"], points)
    return None if reference is None else measured.over(reference)


def _mean(position: int, points: Mapping[int, MeasuredPoint]) -> MeasuredValue | None:
    if position not in points:
        return None
    found = points[position].estimate
    return MeasuredValue(found.mean, found.reach)
