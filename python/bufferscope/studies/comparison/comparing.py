"""Compute the differences between arms, metric by metric, and whether chance can explain them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.base.attach import attached
from bufferscope.base.errors import InputError
from bufferscope.base.names import closest
from bufferscope.figures.charts_of import Charts
from bufferscope.metrics import Estimate, aggregate, definition, of_each
from bufferscope.metrics.key_metrics import key_metrics
from bufferscope.store.run import Run
from bufferscope.studies.agreement.comparing import MetricComparison as MetricComparison
from bufferscope.studies.comparison.arms import Arm, PointArms, Pool, arms_by_point
from bufferscope.studies.comparison.inputs import Input

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Difference:
    """A metric of one arm, compared with the baseline's."""

    arm: str
    """The name of the arm."""
    comparison: MetricComparison
    """Both estimates, their difference and how far chance reaches."""

    @property
    def low(self) -> float:
        """The lower end of the difference's 95 % confidence interval (Welch's); NaN if it is unknown."""
        return self.comparison.difference - self.comparison.reach

    @property
    def high(self) -> float:
        """The upper end of that interval."""
        return self.comparison.difference + self.comparison.reach


@dataclass(frozen=True)
class PointComparison:
    """The arms of one point, compared with the baseline."""

    point_arms: PointArms
    """The arms that have this point, and the swept values that they share."""
    baseline: str
    """The name of the arm that the others are compared with."""
    estimates: dict[str, dict[str, Estimate]]
    """Each arm's metrics, aggregated over its repetitions; in the order of the arms."""

    @property
    def values(self) -> Mapping[str, str]:
        """The swept values that the arms share, path to value."""
        return self.point_arms.values

    @property
    def title(self) -> str:
        """The swept values that the arms share; empty if there are none."""
        return ", ".join(self.values.values())

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms, in their order."""
        return self.point_arms.arms

    @property
    def named_arms(self) -> list[Arm]:
        """The arms, with the point's swept values added to their names."""
        named = ((", ".join(part for part in (arm.label, self.title) if part), arm.runs) for arm in self.arms)
        return [Arm(label, runs) for label, runs in named]

    @property
    def metrics(self) -> list[str]:
        """The metrics that at least one arm has, the most important ones first."""
        first = dict.fromkeys(name for arm in self.arms for name in key_metrics(arm.runs[0].scenario))
        every = dict.fromkeys(name for found in self.estimates.values() for name in found)
        return [name for name in {**first, **every} if name in every]

    @property
    def key_metrics(self) -> list[str]:
        """Those of the metrics that say most about the traffic."""
        first = {name for arm in self.arms for name in key_metrics(arm.runs[0].scenario)}
        return [name for name in self.metrics if name in first]

    @property
    def is_judged(self) -> bool:
        """Whether this point has the baseline and another arm to compare with it."""
        return self.baseline in self.estimates and len(self.arms) > 1

    def differences(self, metric: str) -> list[Difference]:
        """Compare a metric of every other arm with the baseline's.

        Parameters
        ----------
        metric
            The metric's name.

        Returns
        -------
        list of Difference
            One for each arm that has the metric; empty if the baseline has not.
        """
        reference = self.estimates.get(self.baseline, {}).get(metric)
        if reference is None:
            return []
        return [
            Difference(label, MetricComparison(metric, found[metric], reference, None))
            for label, found in self.estimates.items()
            if label != self.baseline and metric in found
        ]

    @cached_property
    def figures(self) -> Charts:
        """The charts of this point; each shows all arms."""
        return Charts(pool(self.arms))


class Comparison:
    """Runs compared with a baseline, point by point: what `bufferscope.compare` returns."""

    def __init__(self, inputs: Sequence[Input], baseline: str | None = None) -> None:
        """Compare.

        Parameters
        ----------
        inputs
            The runs, with the names that they were given.
        baseline
            The name of the arm that the others are compared with. Default: the first one.

        Raises
        ------
        InputError
            There is nothing to compare, or no arm has this name.
        """
        found = arms_by_point(inputs)
        self.arms = tuple(dict.fromkeys(arm.label for point in found for arm in point.arms))
        """The names of the arms, in their order."""
        self.baseline = self._chosen(baseline)
        """The name of the arm that the others are compared with."""
        points = [PointComparison(each, self.baseline, _estimates(each)) for each in found]
        self.points = tuple(point for point in points if point.is_judged)
        """The points at which other arms can be compared with the baseline."""
        self.unmatched = tuple(point for point in points if not point.is_judged)
        """The points that only one arm has, or that the baseline lacks: nothing is compared there."""

    def _chosen(self, baseline: str | None) -> str:
        if baseline is None:
            return self.arms[0]
        if baseline not in self.arms:
            raise InputError(f"no arm is called {baseline!r}{closest(baseline, self.arms)}; {', '.join(self.arms)}")
        return baseline

    @property
    def runs(self) -> list[Run]:
        """All runs, side by side."""
        return [run for point in (*self.points, *self.unmatched) for arm in point.arms for run in arm.runs]

    @property
    def experiments(self) -> list[str]:
        """The names of the runs' experiments."""
        return list(dict.fromkeys(run.experiment for run in self.runs))

    @cached_property
    def figures(self) -> Charts:
        """The charts of all points and arms together, by name; a chart is drawn when it is looked up."""
        return Charts(pool([arm for point in self.points for arm in point.named_arms]))

    @cached_property
    def table(self) -> "pl.DataFrame":
        """One row for each point, metric and arm other than the baseline.

        Columns: the swept values that the arms share, then `metric, unit, side` (the arm), `baseline, value`,
        `baseline_value, difference, difference_low, difference_high` (the 95 % confidence interval), `relative, n`,
        `baseline_n` and `beyond_chance`.
        A value is null if lost probes hide it, or if there are too few repetitions to know it.
        """
        import polars as pl

        rows = [row for point in self.points for row in _rows(point)]
        numbers = ("value", "baseline_value", "difference", "difference_low", "difference_high", "relative")
        kinds = {"beyond_chance": pl.Boolean, **dict.fromkeys(numbers, pl.Float64)}
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=kinds)

    def report(self, path: str | PathLike[str] = "comparison", *, stills: bool = False) -> Path:
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
        page: Path = attached("Comparison.report")(self, path, stills=stills)
        return page

    def _repr_html_(self) -> str:
        return str(attached("Comparison.html")(self))

    def __repr__(self) -> str:
        return f"Comparison({' and '.join(self.arms)}; {len(self.points)} point{'s' * (len(self.points) != 1)})"


def pool(arms: Sequence[Arm]) -> Pool:
    """The runs of these arms, each with the name of its arm."""
    return Pool([run for arm in arms for run in arm.runs], [arm.label for arm in arms for _ in arm.runs])


def _estimates(point: PointArms) -> dict[str, dict[str, Estimate]]:
    """Metrics by arm."""
    return {arm.label: aggregate(list(of_each(arm.runs))) for arm in point.arms}


def _rows(point: PointComparison) -> list[dict[str, object]]:
    return [
        {**point.values, **_row(difference, point.baseline)}
        for metric in point.metrics
        for difference in point.differences(metric)
    ]


def _row(difference: Difference, baseline: str) -> dict[str, object]:
    found = difference.comparison
    known = definition(found.metric)
    within = found.within_spread
    return {
        "metric": found.metric,
        "unit": known.unit if known else "",
        "side": difference.arm,
        "baseline": baseline,
        "value": _finite(found.value.mean),
        "baseline_value": _finite(found.reference.mean),
        "difference": _finite(found.difference),
        "difference_low": _finite(difference.low),
        "difference_high": _finite(difference.high),
        "relative": _finite(found.relative),
        "n": found.value.n,
        "baseline_n": found.reference.n,
        "beyond_chance": None if within is None else not within,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
