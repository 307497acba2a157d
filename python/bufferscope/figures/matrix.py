"""Figures with a cell for each combination of swept values: rows for the first swept key, columns for all others."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from bufferscope.figures import parts
from bufferscope.figures.source import NoDataError, Point, ResultRecords, key_title, others, points, shared_keys
from bufferscope.metrics import NotMeasuredError, metric
from bufferscope.metrics.statistics import Estimate, estimate

CELL = 30
"""Height in pixels of a row."""
NARROW = 4
"""Columns that fit on half a page; with more, the figure gets the full width of the page (its `usermeta.wide`)."""
LINE = 15
"""Height in pixels of a line of a column's label."""
REPEATED = 44
"""Height in pixels of a row that has an interval below each number."""
BETWEEN = " · "
"""The separator between the values of a column's label; the values stand below one another."""


Value = Callable[[Point], Estimate | None]
"""Computes a point's value, with the uncertainty from its repetitions; None without a value."""


@dataclass(frozen=True)
class Look:
    """The texts and colours of a matrix."""

    title: str
    subtitle: str
    quantity: str
    """The quantity that a cell shows, with its unit."""
    format: str
    """The number's format, for d3."""
    scale: alt.Scale


def matrix(result: ResultRecords, value: Value, look: Look) -> alt.LayerChart:
    """One cell per point, in the order of the sweep, with the point's value as colour and number.

    With repetitions, half the width of the mean's 95 % confidence interval is shown below the number. If `value`
    returns None, the point has no cell, and rows and columns without any value are left out. Raises `NoDataError` if
    no key is swept at every point or if no point has a value.
    """
    found = points(result)
    shared = shared_keys(found)
    if not shared:
        is_swept = any(point.first.point for point in found)
        raise NoDataError("no key is swept at every point" if is_swept else "nothing is swept, so there is no matrix")
    keys = list(dict.fromkeys([shared[0], *(key for point in found for key in point.first.point)]))
    frame = pl.DataFrame([cell for point in found if (cell := _cell(result, point, keys, value))])
    if frame.is_empty():
        raise NoDataError(f"no point of the sweep has {look.quantity}")
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
    repeated = frame["low"].is_not_null().any()
    if repeated:
        tips += [alt.Tooltip(f"{end}:Q", title=f"95 % interval, {end}", format=",.4~g") for end in ("low", "high")]
    base = alt.Chart(frame).encode(x=x, y=y, tooltip=tips)
    layers: list[parts.Layer] = [
        base.mark_rect(style="cell").encode(color=alt.Color("value:Q", scale=look.scale, legend=None)),
        base.mark_text(style="number", dy=-7 if repeated else 0).encode(text=alt.Text("value:Q", format=look.format)),
    ]
    if repeated:
        half = "(datum.high - datum.low) / 2"
        reach = f"{half} < abs(datum.value) / 1000 ? '± <0.1 %' : '± ' + format({half}, ',.2~r')"
        known = base.transform_filter("isValid(datum.low)").transform_calculate(reach=reach)
        layers.append(known.mark_text(style="interval", dy=10).encode(text="reach:N"))
    height = (REPEATED if repeated else CELL) * frame["row"].n_unique()
    note = "± half the width of the 95 % confidence interval of the mean over repetitions." if repeated else ""
    subtitle = parts.sentence(look.subtitle, note)
    chart = parts.framed(layers, look.title, subtitle, _description(frame, look), height)
    return chart.properties(usermeta={"wide": frame["column"].n_unique() > NARROW})


def mean_metric(name: str) -> Value:
    """The mean of a metric over a point's repetitions; None if it is not measured, or if losses hide it."""

    def value(point: Point) -> Estimate | None:
        try:
            known = estimate([metric(run, name).number for run in point.runs])
        except NotMeasuredError:
            return None
        return known if math.isfinite(known.mean) else None

    return value


def interval(known: Estimate, digits: int = 6) -> dict[str, float | None]:
    """The ends of the 95 % confidence interval as columns `low` and `high`: null without repetitions."""
    ends = {"low": known.low, "high": known.high}
    return {name: float(f"{end:.{digits}g}") if math.isfinite(end) else None for name, end in ends.items()}


def _cell(result: ResultRecords, point: Point, keys: Sequence[str], value: Value) -> dict[str, object] | None:
    known = value(point)
    if known is None:
        return None
    swept = point.first.point
    row, *rest = (swept[key] for key in keys if key in swept)
    column = BETWEEN.join([*rest, *others(result, point.first)])
    return {"row": row, "column": column, "value": float(f"{known.mean:.6g}")} | interval(known)


def _description(frame: pl.DataFrame, look: Look) -> str:
    told = "; ".join(
        f"{row['row']}{', ' if row['column'] else ''}{row['column']}: {row['value']:.4g}"
        for row in frame.iter_rows(named=True)
    )
    return f"Table of cells, {look.quantity}. {told}."
