"""Differences in words: the same for the terminal, the page and notebooks."""

import math
from dataclasses import dataclass

from bufferscope.base.fmt import NBSP, margin, plural
from bufferscope.metrics import definition
from bufferscope.metrics.window import described, test_load
from bufferscope.model.metric_names import live_phases
from bufferscope.studies.agreement import fmt
from bufferscope.studies.comparison.comparing import Comparison, Difference, PointComparison

BEYOND = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True)
class Cell:
    """An arm's value of a metric, and its difference from the baseline's."""

    arm: str
    value: str
    difference: str
    """Empty for the baseline."""
    beyond: str
    """Whether the difference is beyond what chance explains; empty for the baseline."""
    stands_out: bool


@dataclass(frozen=True)
class MetricView:
    """A metric of every arm."""

    metric: str
    unit: str
    meaning: str
    cells: tuple[Cell, ...]


def metric_view(point: PointComparison, metric: str) -> MetricView:
    """A metric at a point, in the order of the arms."""
    known = definition(metric)
    unit, meaning = (known.unit, known.meaning) if known else ("", "")
    differences = {difference.arm: difference for difference in point.differences(metric)}
    cells = [_cell(point, metric, arm.label, differences.get(arm.label), unit) for arm in point.arms]
    return MetricView(metric, unit, meaning, tuple(cells))


def _cell(point: PointComparison, metric: str, arm: str, difference: Difference | None, unit: str) -> Cell:
    found = point.estimates[arm].get(metric)
    value = fmt.estimate(found) if found else "-"
    if difference is None:
        return Cell(arm, value, "", "", False)
    compared = difference.comparison
    within = compared.within_spread
    told = fmt.difference(compared, unit)
    if not math.isnan(compared.reach):
        absolute, bracket, share = told.partition(" (")
        told = f"{absolute} ±{NBSP}{margin(compared.reach, compared.reference.mean)}{bracket}{share}"
    return Cell(arm, value, told, BEYOND[None if within is None else not within], within is False)


def measured(comparison: Comparison) -> str | None:
    """What part of the runs the metrics are of, if some are tests that are idle before and after their load."""
    tests = [run for run in comparison.runs if test_load(run.scenario) and not live_phases(run.scenario)]
    if not tests:
        return None
    times = list(dict.fromkeys(described(run.scenario) for run in tests))
    which = times[0] if len(times) == 1 else "under load, in each run its own time"
    return f"Metrics are of the time {which}; idle.* are of the rest."


def unmatched(comparison: Comparison) -> list[str]:
    """The points at which nothing can be compared, each with the arms that have it."""
    return [
        f"{point.title or 'the point'}: only in {', '.join(arm.label for arm in point.arms)}"
        for point in comparison.unmatched
    ]


def repetitions(comparison: Comparison) -> str:
    """How much the repetitions say about chance."""
    fewest = min(len(arm.runs) for point in comparison.points for arm in point.arms)
    if fewest == 1:
        return "One repetition says nothing about chance; run with --repeat 3 or more."
    return f"Means of at least {plural(fewest, 'repetition')}, with 95{NBSP}% confidence intervals (Welch)."
