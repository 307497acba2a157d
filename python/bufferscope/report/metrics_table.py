"""All metrics of a result: a table a family of metrics, in it a row a point and a column a metric.

Repetitions of a point are summed up in a cell. Families are narrow enough for a sheet of paper.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bufferscope.figures.source import Point
from bufferscope.metrics import Estimate, aggregate, compute, definition, not_measured
from bufferscope.report.words import NBSP, number

MOST_COLUMNS = 10
"""Metrics in a table: more don't fit on a sheet of A4."""
CENSORED = "censored"


@dataclass(frozen=True)
class Column:
    """One metric."""

    name: str
    """Its whole name."""
    heading: str
    """What its family's name leaves of it, without the unit."""
    unit: str
    meaning: str


@dataclass(frozen=True)
class Family:
    """Metrics that share the beginning of their names."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    """A row a point, a cell a column; empty where the point doesn't have the metric."""


@dataclass(frozen=True)
class MetricsTable:
    """All metrics of all points."""

    points: tuple[str, ...]
    """The points' labels; none where there is a single point that needs no name."""
    families: tuple[Family, ...]
    not_measured: tuple[str, ...]
    """The metrics that an engine of these runs cannot measure."""
    repetitions: int
    """The most runs that a cell sums up."""
    censored: bool
    """Whether some cell is censored."""

    @property
    def size(self) -> int:
        """How many metrics there are."""
        return sum(len(family.columns) for family in self.families)


def table(points: Sequence[Point]) -> MetricsTable:
    """The metrics of a result's points."""
    estimates = [aggregate([compute(run) for run in point.runs]) for point in points]
    names: dict[str, dict[str, None]] = {}
    for name in dict.fromkeys(name for found in estimates for name in found):
        names.setdefault(family_name(name), {})[name] = None
    families = tuple(
        _family(family, part, estimates) for family, members in names.items() for part in _parts(list(members))
    )
    labels = tuple(point.label for point in points)
    return MetricsTable(
        points=labels if any(labels) else (),
        families=families,
        not_measured=tuple(dict.fromkeys(name for point in points for run in point.runs for name in not_measured(run))),
        repetitions=max(len(point.runs) for point in points),
        censored=any(CENSORED in row for family in families for row in family.rows),
    )


def family_name(metric: str) -> str:
    """What metrics of a table have in common: `queue.r1>h2` of `queue.r1>h2.max_packets`, `drops` of `drops.r1>h2`."""
    return metric.rpartition(".")[0] or metric


def meanings(tables: Iterable[MetricsTable]) -> tuple[tuple[str, str, str], ...]:
    """Each definition that the metrics of these tables have, once: its name, unit and meaning."""
    known = (definition(column.name) for made in tables for family in made.families for column in family.columns)
    return tuple(dict.fromkeys((each.name, each.unit, each.meaning) for each in known if each))


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names in portions that a sheet of paper has room for."""
    return (names[start : start + MOST_COLUMNS] for start in range(0, len(names), MOST_COLUMNS))


def _family(family: str, names: Sequence[str], estimates: Sequence[dict[str, Estimate]]) -> Family:
    rows = tuple(tuple(_value(found.get(name)) for name in names) for found in estimates)
    return Family(family, tuple(_column(name, family) for name in names), rows)


def _column(name: str, family: str) -> Column:
    known = definition(name)
    rest = name.removeprefix(f"{family}.")
    heading = rest.rpartition("_")[0] if known and "_" in known.name.rpartition(">")[2] else rest
    return Column(name, heading or rest, known.unit if known else "", known.meaning if known else "")


def _value(estimate: Estimate | None) -> str:
    """The mean, with half the width of its 95 % confidence interval where there are repetitions."""
    if estimate is None:
        return ""
    if estimate.censored:
        return CENSORED
    if math.isnan(estimate.sem):
        return number(estimate.mean)
    return f"{number(estimate.mean)}{NBSP}±{NBSP}{number((estimate.high - estimate.low) / 2)}"
