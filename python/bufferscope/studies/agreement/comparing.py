"""Compare the runs of two engines, metric by metric and point by point."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bufferscope.base.errors import StoreError
from bufferscope.metrics.tables import aggregate
from bufferscope.stats.estimate import Estimate
from bufferscope.stats.spread import may_be_alike, reach
from bufferscope.studies.agreement.derived import measured
from bufferscope.studies.agreement.tolerances import TOLERANCES, Tolerance, tolerance_of

if TYPE_CHECKING:
    from bufferscope.results.result import Result
    from bufferscope.store.run import Run


@dataclass(frozen=True)
class MetricComparison:
    """One metric on two engines; the second is the reference."""

    metric: str
    value: Estimate
    reference: Estimate
    tolerance: Tolerance | None

    @property
    def is_of_medians(self) -> bool:
        """Whether medians of the repetitions are compared: the mean is infinite where losses hide the value of one."""
        return self.value.censored or self.reference.censored

    @cached_property
    def centres(self) -> tuple[float, float]:
        """The two numbers that are compared, in the metric's unit: means, or medians. +inf if losses hide it."""
        if self.is_of_medians:
            return self.value.median, self.reference.median
        return self.value.mean, self.reference.mean

    @property
    def difference(self) -> float:
        """The value minus the reference, in the metric's unit; NaN if both are hidden by losses."""
        value, reference = self.centres
        return value - reference

    @property
    def relative(self) -> float:
        """The difference as a share of the reference; NaN if the reference is 0, or if a value is hidden."""
        reference = self.centres[1]
        hidden = reference == 0 or not math.isfinite(self.difference)
        return math.nan if hidden else self.difference / abs(reference)

    @cached_property
    def reach(self) -> float:
        """How far apart the two may lie by chance alone (`spread.reach`); NaN if that is unknown, as of medians."""
        return reach(self.value, self.reference)

    @property
    def within_spread(self) -> bool | None:
        """Whether chance can explain the difference; None if that is unknown, as with too few repetitions."""
        if self.is_of_medians:
            return may_be_alike(self.value, self.reference)
        return None if math.isnan(self.reach) else abs(self.difference) <= self.reach

    @property
    def within_tolerance(self) -> bool | None:
        """Whether the two are close enough; None without a tolerance, or if both are hidden by losses."""
        return None if self.tolerance is None else self.tolerance.is_met(*self.centres)


@dataclass(frozen=True)
class PointAgreement:
    """One point of the experiment on both engines."""

    runs: tuple["Run", ...]
    """The first engine's, then the reference's."""
    comparisons: tuple[MetricComparison, ...]
    """Every metric that both measured: those with a tolerance first, the others in the order of their definitions."""
    unshared: Mapping[str, tuple[str, ...]]
    """Metrics that only one engine measured, by engine."""

    @property
    def values(self) -> Mapping[str, str]:
        """The point's swept values, path to label."""
        return self.runs[0].point

    @property
    def judged(self) -> tuple[MetricComparison, ...]:
        """The comparisons that have a tolerance."""
        return tuple(comparison for comparison in self.comparisons if comparison.tolerance)


@dataclass(frozen=True)
class Agreement:
    """An experiment on two engines."""

    experiment: str
    engines: tuple[str, str]
    """The engine that is judged, and the reference."""
    points: tuple[PointAgreement, ...]

    def count(self, verdict: bool | None) -> int:
        """How many tolerances, of all points together, are kept (True), exceeded (False) or can't be judged (None)."""
        return sum(c.within_tolerance is verdict for point in self.points for c in point.judged)


def compare(result: "Result") -> Agreement:
    """Compare the two engines of a result's runs; the second one is the reference.

    Raises `StoreError` if there are not exactly two engines, if a point was not run on both, or if the runs differ in
    anything else.
    """
    engines = tuple(result.by_engine)
    if len(engines) != 2:
        raise StoreError(f"found engines {' and '.join(engines)}; allowed: runs of two engines")
    swept = {key for run in result.runs for key in run.point}
    if others := [key for key in result.varying if key not in (*swept, "engine")]:
        raise StoreError(f"an agreement compares only engines: these runs also differ in {', '.join(others)}")
    positions = dict.fromkeys(run.position for run in result.runs)
    points = [[run for run in result.runs if run.position == position] for position in positions]
    return Agreement(result.experiment, engines, tuple(_point(runs, engines) for runs in points))


def _point(runs: Sequence["Run"], engines: tuple[str, str]) -> PointAgreement:
    estimates = []
    for engine in engines:
        own = [run for run in runs if run.engine == engine]
        if not own:
            raise StoreError(f"{runs[0].experiment_dir}: the point of {runs[0].id} has no run on {engine}")
        estimates.append(aggregate(list(measured(own))))
    value, reference = estimates
    shared = [name for name in value if name in reference]
    judged = [name for tolerance in TOLERANCES for name in shared if tolerance.covers(name)]
    names = [*judged, *(name for name in shared if name not in judged)]
    return PointAgreement(
        runs=tuple(runs),
        comparisons=tuple(MetricComparison(name, value[name], reference[name], tolerance_of(name)) for name in names),
        unshared={
            engine: tuple(name for name in own if name not in shared)
            for engine, own in zip(engines, estimates, strict=True)
        },
    )
