"""Figures with a cell for each combination of swept values: rows for the first swept key, columns for all others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, style
from bufferscope.figures.labels import words_width
from bufferscope.figures.source import NoDataError, PlottedPoint, ResultRecords, key_title, others, points, shared_keys
from bufferscope.metrics import NotMeasuredError, metric
from bufferscope.stats.estimate import Estimate, estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

CELL = 30
"""Height in pixels of a row."""
NARROW = 4
"""Columns that fit on half a page; with more, the figure gets the full width of the page (its `usermeta.wide`)."""
LINE = 15
"""Height in pixels of a line of a column's label."""
NUMBER, GAP = 40, 10
"""The least width in pixels of a column with numbers, and between two labels of columns."""
ROW_LABEL = 260
"""The most pixels of a row's label."""
BESIDE = 50
"""Pixels beside the rows' labels: their title, and the edges of the figure."""
REPEATED = 44
"""Height in pixels of a row that has an interval below each number."""
BETWEEN = " · "
"""The separator between the values of a column's label; the values stand below one another."""


Value = Callable[[PlottedPoint], Estimate | None]
"""Computes a point's value, with the uncertainty from its repetitions; None without a value."""


@dataclass(frozen=True)
class MatrixStyle:
    """The texts and colours of a matrix."""

    title: str
    subtitle: str
    quantity: str
    """The quantity that a cell shows, with its unit."""
    format: str
    """The number's format, for d3."""
    scale: Mapping[str, Any]
    """The scale of the colours, as the arguments of `altair.Scale`."""
    least_ratio: float | None = None
    """How many times as large as the least value the end of the colours is at least; None for a scale with its own
    domain."""


def matrix(result: ResultRecords, value: Value, look: MatrixStyle) -> LayerFigure:
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
    titles = {"row": key_title(keys[0]), "column": ", ".join(key_title(key) for key in keys[1:])}
    across, down = ("column", "row") if _fits(frame, "column") else ("row", "column")
    x, y = _axis_above(frame, across, titles[across]), _axis_beside(down, titles[down])
    tips = [
        alt.Tooltip("row:N", title=titles["row"]),
        alt.Tooltip("column:N", title="at"),
        alt.Tooltip("value:Q", title=look.quantity, format=",.4~g"),
    ]
    repeated = frame["low"].is_not_null().any()
    if repeated:
        tips += [alt.Tooltip(f"{end}:Q", title=f"95 % interval, {end}", format=",.4~g") for end in ("low", "high")]
    base = alt.Chart(frame).encode(x=x, y=y, tooltip=tips)
    layers: list[parts.Layer] = [
        base.mark_rect(style="cell").encode(color=alt.Color("value:Q", scale=_scale(frame, look), legend=None)),
    ]
    has_numbers = frame[across].n_unique() * NUMBER <= style.WIDTH
    if has_numbers:
        text = alt.Text("value:Q", format=look.format)
        layers.append(base.mark_text(style="number", dy=-7 if repeated else 0).encode(text=text))
    if repeated and has_numbers:
        half = "(datum.high - datum.low) / 2"
        reach = f"{half} < abs(datum.value) / 1000 ? '± <0.1 %' : '± ' + format({half}, ',.2~r')"
        known = base.transform_filter("isValid(datum.low)").transform_calculate(reach=reach)
        layers.append(known.mark_text(style="interval", dy=10).encode(text="reach:N"))
    height = (REPEATED if repeated else CELL) * frame[down].n_unique()
    note = "± half the width of the 95 % confidence interval of the mean over repetitions." if repeated else ""
    unseen = "" if has_numbers else "Too many columns for numbers in the cells: point at one."
    subtitle = parts.sentence(look.subtitle, note if has_numbers else "", unseen)
    chart = parts.framed(layers, look.title, subtitle, _description(frame, look), height)
    columns = frame[across].n_unique()
    beside = BESIDE + min(ROW_LABEL, max(words_width(label) for label in frame[down]))
    room = {"columns": columns, "needed": round(_width(frame, across) + beside), "beside": round(beside)}
    return chart.properties(usermeta={"wide": columns > NARROW, "matrix": room})


def _fits(frame: pl.DataFrame, across: str) -> bool:
    """Whether the values of this side fit side by side above the matrix, or better than those of the other side."""
    down = "row" if across == "column" else "column"
    return _width(frame, across) <= style.WIDTH or frame[across].n_unique() <= frame[down].n_unique()


def _width(frame: pl.DataFrame, across: str) -> float:
    """The pixels that the columns take with their labels side by side."""
    labels = frame[across].unique()
    widest = max(words_width(line) for label in labels for line in label.split(BETWEEN))
    return len(labels) * max(NUMBER, widest + GAP)


def _axis_above(frame: pl.DataFrame, across: str, title: str) -> alt.X:
    """The columns: their labels in lines below one another, or upright where there is no room for that."""
    lines = max(label.count(BETWEEN) for label in frame[across].unique())
    is_upright = _width(frame, across) > style.WIDTH
    written: Any = {"labelAngle": -90} if is_upright else {
        "labelAngle": 0,
        "labelExpr": f"split(datum.label, '{BETWEEN}')",
        "labelPadding": 6 + LINE * lines,
    }  # fmt: skip
    axis = alt.Axis(orient="top", grid=False, ticks=False, domain=False, labelOverlap=False, **written)
    return alt.X(f"{across}:N", sort=None, title=title or None, axis=axis)


def _axis_beside(down: str, title: str) -> alt.Y:
    axis = alt.Axis(grid=False, ticks=False, domain=False, labelOverlap=False, labelLimit=ROW_LABEL)
    return alt.Y(f"{down}:N", sort=None, title=title or None, axis=axis)


def _scale(frame: pl.DataFrame, look: MatrixStyle) -> alt.Scale:
    """The colours' scale. Values that hardly differ have colours that hardly differ.

    Logarithmic colours span at least `least_ratio`; linear ones begin at zero.
    """
    low, high = axes.span(frame["value"])
    scale = alt.Scale(**look.scale)
    if look.least_ratio is None:
        return scale
    if scale.type == "log":
        known = frame["value"].filter(frame["value"] > 0)
        low, high = axes.span(known) if len(known) else (1.0, 1.0)
        scale.domain, scale.clamp = [low, max(high, low * look.least_ratio)], True
    else:
        scale.domain = [min(0.0, low), high if high > 0 else 1.0]
    return scale


def mean_metric(name: str) -> Value:
    """The mean of a metric over a point's repetitions; None if it is not measured, or if losses hide it."""

    def value(point: PlottedPoint) -> Estimate | None:
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


def _cell(result: ResultRecords, point: PlottedPoint, keys: Sequence[str], value: Value) -> dict[str, object] | None:
    known = value(point)
    if known is None:
        return None
    swept = point.first.point
    row, *rest = (swept[key] for key in keys if key in swept)
    column = BETWEEN.join([*rest, *others(result, point.first)])
    return {"row": row, "column": column, "value": float(f"{known.mean:.6g}")} | interval(known)


def _description(frame: pl.DataFrame, look: MatrixStyle) -> str:
    told = "; ".join(
        f"{row['row']}{', ' if row['column'] else ''}{row['column']}: {row['value']:.4g}"
        for row in frame.iter_rows(named=True)
    )
    return f"Table of cells, {look.quantity}. {told}."
