"""Figures with a cell for each combination of swept values: the first swept key downwards, all others across."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import altair as alt
import polars as pl

from bufferscope.figures import parts
from bufferscope.figures.source import NoDataError, Point, ResultRecords, key_title, others, points
from bufferscope.metrics import NotMeasuredError, metric

CELL = 30
"""Height in pixels of a row."""
NARROW = 4
"""Columns for which half a page is wide enough; with more, a page gives the figure (its `usermeta.wide`) all of it."""
LINE = 15
"""Height in pixels of a line of a column's label."""
BETWEEN = " · "
"""Between the values of a column's label, which stand below one another."""


@dataclass(frozen=True)
class Look:
    """What a matrix shows, in words and colours."""

    title: str
    subtitle: str
    quantity: str
    """What a cell's number is, with its unit."""
    format: str
    """The number's format, for d3."""
    scale: alt.Scale


def matrix(result: ResultRecords, value: Callable[[Point], float | None], look: Look) -> alt.LayerChart:
    """A cell a point, in the order of the sweep, with its value as colour and number.

    `value` is `None` for a point that has none: its cell stays empty, and so do rows and columns without any. Raises
    `NoDataError` where nothing is swept or no point has a value.
    """
    keys = list(result.runs[0].point) if result.runs else []
    if not keys:
        raise NoDataError("nothing is swept, so there is nothing to compare")
    frame = pl.DataFrame([cell for point in points(result) if (cell := _cell(result, point, value))])
    if frame.is_empty():
        raise NoDataError(f"{look.quantity}: no point of the sweep has it")
    across = keys[1:]
    lines = alt.Axis(
        labelAngle=0,
        labelExpr=f"split(datum.label, '{BETWEEN}')",
        labelPadding=6 + LINE * max(0, len(across) - 1),
        orient="top",
        grid=False,
        ticks=False,
        domain=False,
    )
    x = alt.X("column:N", sort=None, title=", ".join(key_title(key) for key in across) or None, axis=lines)
    y = alt.Y("row:N", sort=None, title=key_title(keys[0]), axis=alt.Axis(grid=False, ticks=False, domain=False))
    tips = [
        alt.Tooltip("row:N", title=key_title(keys[0])),
        alt.Tooltip("column:N", title="at"),
        alt.Tooltip("value:Q", title=look.quantity, format=",.4~g"),
    ]
    base = alt.Chart(frame).encode(x=x, y=y, tooltip=tips)
    layers: list[parts.Layer] = [
        base.mark_rect(style="cell").encode(color=alt.Color("value:Q", scale=look.scale, legend=None)),
        base.mark_text(style="number").encode(text=alt.Text("value:Q", format=look.format)),
    ]
    height = CELL * frame["row"].n_unique()
    chart = parts.framed(layers, look.title, look.subtitle, _description(frame, look), height)
    return chart.properties(usermeta={"wide": frame["column"].n_unique() > NARROW})


def mean_metric(name: str) -> Callable[[Point], float | None]:
    """The mean of a metric over a point's repetitions; none where it is not measured or losses hide it."""

    def value(point: Point) -> float | None:
        try:
            numbers = [metric(run, name).number for run in point.runs]
        except NotMeasuredError:
            return None
        return fmean(numbers) if all(map(math.isfinite, numbers)) else None

    return value


def _cell(result: ResultRecords, point: Point, value: Callable[[Point], float | None]) -> dict[str, object] | None:
    number = value(point)
    if number is None:
        return None
    row, *rest = point.first.point.values()
    return {"row": row, "column": BETWEEN.join([*rest, *others(result, point.first)]), "value": float(f"{number:.6g}")}


def _description(frame: pl.DataFrame, look: Look) -> str:
    told = "; ".join(
        f"{row['row']}{', ' if row['column'] else ''}{row['column']}: {row['value']:.4g}"
        for row in frame.iter_rows(named=True)
    )
    return f"Table of cells, {look.quantity}. {told}."
