"""All metrics of a result: one row per point and one column per metric, on sheets narrow enough for paper.

A cell aggregates the repetitions of a point. Columns are grouped by family: metrics whose names begin with the same
part.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bufferscope.base.fmt import NBSP, margin, number
from bufferscope.figures.source import PlottedPoint
from bufferscope.metrics import Estimate, aggregate, definition, not_measured, not_recorded, of_each

MOST_COLUMNS = 9
"""The most metrics on a sheet: more don't fit on A4 beside the labels of points."""
CENSORED = "censored"


@dataclass(frozen=True)
class Column:
    """One metric."""

    name: str
    """The metric's full name."""
    heading: str
    """The name without the family's name and without the unit."""
    unit: str
    meaning: str


@dataclass(frozen=True)
class Family:
    """Columns that share the beginning of their metrics' names."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Sheet:
    """Some families side by side."""

    families: tuple[Family, ...]
    rows: tuple[tuple[str, ...], ...]
    """One row per point, one cell per column; a cell is empty if the point doesn't have the metric."""


@dataclass(frozen=True)
class MetricsTable:
    """All metrics of all points."""

    points: tuple[str, ...]
    """The points' labels; none if a single point needs no label."""
    sheets: tuple[Sheet, ...]
    not_measured: tuple[str, ...]
    """The metrics that an engine of these runs cannot measure."""
    not_recorded: tuple[str, ...]
    """The tables that some of these runs do not record."""
    repetitions: int
    """The most runs that a cell aggregates."""
    censored: bool
    """Whether any cell is censored."""

    @property
    def size(self) -> int:
        """How many metrics there are."""
        return len(self.columns)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of all sheets."""
        return tuple(column for sheet in self.sheets for family in sheet.families for column in family.columns)


def table(points: Sequence[PlottedPoint]) -> MetricsTable:
    """The metrics of a result's points."""
    found = of_each([run for point in points for run in point.runs])
    estimates = [aggregate([next(found) for _ in point.runs]) for point in points]
    names = dict.fromkeys(name for found in estimates for name in found)
    sheets = tuple(_sheet(families, estimates) for families in _sheets(names))
    labels = tuple(point.label for point in points)
    return MetricsTable(
        points=labels if any(labels) else (),
        sheets=sheets,
        not_measured=tuple(dict.fromkeys(name for point in points for run in point.runs for name in not_measured(run))),
        not_recorded=tuple(dict.fromkeys(name for point in points for run in point.runs for name in not_recorded(run))),
        repetitions=max(len(point.runs) for point in points),
        censored=any(CENSORED in row for sheet in sheets for row in sheet.rows),
    )


def family_name(metric: str) -> str:
    """The family of a metric: `queue.r1>h2` for `queue.r1>h2.max_packets`, `drops` for `drops.r1>h2`."""
    return metric.rpartition(".")[0] or metric


def meanings(tables: Iterable[MetricsTable]) -> tuple[tuple[str, str, str], ...]:
    """The definitions of the metrics in these tables, each once: name, unit and meaning."""
    known = (definition(column.name) for made in tables for column in made.columns)
    return tuple(dict.fromkeys((each.name, each.unit, each.meaning) for each in known if each))


def _sheets(names: Iterable[str]) -> Iterator[list[tuple[str, Sequence[str]]]]:
    """For each sheet, as many families (with the names of their metrics) as fit on it; large families are split."""
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(family_name(name), []).append(name)
    sheet: list[tuple[str, Sequence[str]]] = []
    for family, own in members.items():
        for start in range(0, len(own), MOST_COLUMNS):
            part = own[start : start + MOST_COLUMNS]
            if sum(len(there) for _, there in sheet) + len(part) > MOST_COLUMNS:
                yield sheet
                sheet = []
            sheet.append((family, part))
    if sheet:
        yield sheet


def _sheet(families: Sequence[tuple[str, Sequence[str]]], estimates: Sequence[dict[str, Estimate]]) -> Sheet:
    names = [name for _, members in families for name in members]
    return Sheet(
        families=tuple(
            Family(family, tuple(_column(name, family) for name in members)) for family, members in families
        ),
        rows=tuple(tuple(_value(found.get(name)) for name in names) for found in estimates),
    )


def _column(name: str, family: str) -> Column:
    known = definition(name)
    rest = name.removeprefix(f"{family}.")
    heading = rest.rpartition("_")[0] if known and known.unit and "_" in known.name.rpartition(">")[2] else rest
    return Column(name, heading or rest, known.unit if known else "", known.meaning if known else "")


def _value(estimate: Estimate | None) -> str:
    """The mean; with repetitions, also half the width of its 95 % confidence interval."""
    if estimate is None:
        return ""
    if estimate.censored:
        return CENSORED
    if math.isnan(estimate.sem):
        return number(estimate.mean)
    return f"{number(estimate.mean)}{NBSP}±{NBSP}{margin(estimate.reach, estimate.mean)}"
