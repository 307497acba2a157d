"""All metrics of a result as one table: a row a metric, a column a point, repetitions summed up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bufferscope.figures.source import Point
from bufferscope.metrics import Estimate, aggregate, compute, definition, not_measured
from bufferscope.report.words import NBSP, number


@dataclass(frozen=True)
class MetricRow:
    """One metric at every point."""

    name: str
    unit: str
    meaning: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class MetricsTable:
    """The table, with the labels of its columns."""

    points: tuple[str, ...]
    rows: tuple[MetricRow, ...]
    not_measured: tuple[str, ...]
    """The metrics that an engine of these runs cannot measure."""


def table(points: Sequence[Point]) -> MetricsTable:
    """The metrics of a result's points."""
    estimates = [aggregate([compute(run) for run in point.runs]) for point in points]
    names = dict.fromkeys(name for found in estimates for name in found)
    rows = tuple(_row(name, [found.get(name) for found in estimates]) for name in names)
    absent = dict.fromkeys(name for point in points for run in point.runs for name in not_measured(run))
    return MetricsTable(tuple(point.label or "value" for point in points), rows, tuple(absent))


def _row(name: str, estimates: Sequence[Estimate | None]) -> MetricRow:
    known = definition(name)
    values = tuple(_value(estimate) for estimate in estimates)
    return MetricRow(name, known.unit if known else "", known.meaning if known else "", values)


def _value(estimate: Estimate | None) -> str:
    """The mean, with half the width of its 95 % confidence interval where there are repetitions."""
    if estimate is None:
        return ""
    if estimate.censored:
        return "censored"
    if math.isnan(estimate.sem):
        return number(estimate.mean)
    return f"{number(estimate.mean)}{NBSP}±{NBSP}{number((estimate.high - estimate.low) / 2)}"
