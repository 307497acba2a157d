"""Figures of a metric against a swept size: marks at the means, bars of their standard errors, a line for each series.

The size is the first swept key whose values all begin with a number of one unit, such as `80p` or `80p on the card`.
What follows the number, and the values of the other varying keys, make the series.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, pointer
from bufferscope.figures.matrix import Value
from bufferscope.figures.source import (
    NoDataError,
    PlottedPoint,
    ResultRecords,
    key_title,
    points,
    shared_keys,
    variation,
)
from bufferscope.stats.estimate import Estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

NUMBER = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]*)(?: (.+))?", re.IGNORECASE)
"""A swept value that is a size: a number and its unit, and perhaps more words."""
UNITS = {"p": "packets", "": "packets", "b": "bytes"}
"""Units in words; a number without a unit is one of packets, as in the files. Other units are written as they are."""
BETWEEN = " · "
"""Between the values that make a series."""


@dataclass(frozen=True)
class BySizeStyle:
    """The texts of such a figure."""

    title: str
    quantity: str
    """What the values are, with their unit in parentheses: the title of the axis."""
    format: str
    """The format of numbers in the description, for Python."""


def by_size(result: ResultRecords, value: Value, look: BySizeStyle) -> LayerFigure:
    """Marks at each point's size and value, joined in the order of the sizes; bars reach one standard error each way.

    A point for which `value` returns None has no mark. Raises `NoDataError` if no swept key is a size, or if no point
    has a value.
    """
    key, unit = _size_key(result)
    rows = [row for point in points(result) if (row := _row(result, point, key, value))]
    if not rows:
        raise NoDataError(f"no point of the sweep has {look.quantity}")
    frame = pl.DataFrame(rows)
    series = frame["series"].unique(maintain_order=True).to_list()
    sizes = sorted(frame["size"].unique().to_list())
    said = "size" if key_title(key) == "port" else key_title(key)
    x = alt.X("size:Q", title=f"{said} ({unit})", scale=_scale(sizes), axis=alt.Axis(values=sizes, format="d"))
    top = float(frame["high"].max() or 0)  # type: ignore[arg-type]
    y = alt.Y("value:Q", title=look.quantity, scale=alt.Scale(domain=[0, 1.05 * top or 1], nice=False))
    named = len(series) > 1
    color, dash = _series(result, key, series) if named else (alt.Undefined, alt.Undefined)
    opacity = pointer.dimmed(pointer.isolating(color))
    tips = [alt.Tooltip("series:N", title="at")] if named else []
    tips += [axes.tooltip(x), axes.tooltip(y)]
    repeated = max(len(point.runs) for point in points(result))
    if repeated > 1:
        tips.append(alt.Tooltip("sem:Q", title="standard error", format=",.3~g"))
    base = alt.Chart(frame).encode(x=x, color=color, opacity=opacity)
    marks: list[parts.Layer] = [
        base.mark_line(strokeWidth=1.25).encode(y=y, strokeDash=dash, detail="series:N"),
        base.mark_rule(strokeWidth=1.75).encode(y=alt.Y("low:Q", title=look.quantity), y2="high:Q"),
        base.mark_point(size=55).encode(y=y, tooltip=tips),
    ]
    bars = f"Bars: standard error of the mean over {repeated} repetitions." if repeated > 1 else ""
    subtitle = parts.sentence(bars, "Logarithmic sizes." if _is_wide(sizes) else "")
    layers = pointer.clickable(marks, color)
    return parts.framed(layers, look.title, subtitle, _description(frame, look, unit))


def _size_key(result: ResultRecords) -> tuple[str, str]:
    """The first swept key with values that are sizes, and their unit in words."""
    found = points(result)
    for key in shared_keys(found):
        values = {point.first.point[key] for point in found}
        units = {match[2].lower() if (match := NUMBER.fullmatch(value)) else None for value in values}
        if len(units) == 1 and (unit := units.pop()) is not None and len(values) > 1:
            return key, UNITS.get(unit, unit)
    raise NoDataError("no swept key has several sizes as values, such as 80p")


def _row(result: ResultRecords, point: PlottedPoint, key: str, value: Value) -> dict[str, object] | None:
    known = value(point)
    match = NUMBER.fullmatch(point.first.point[key])
    if known is None or match is None:
        return None
    found = variation(result)
    values = found.of(point.first)
    words = [match[3] or "", *(values[other] for other in found.keys if other in values and other != key)]
    series = BETWEEN.join(word for word in words if word)
    return {"series": series, "size": float(match[1])} | _bar(known)


def _bar(known: Estimate) -> dict[str, float | None]:
    """The mean, its standard error (null for a single repetition), and the ends of its bar."""
    sem = known.sem if math.isfinite(known.sem) else 0.0
    values = {"value": known.mean, "low": max(0.0, known.mean - sem), "high": known.mean + sem}
    rounded: dict[str, float | None] = {name: float(f"{each:.6g}") for name, each in values.items()}
    return rounded | {"sem": float(f"{sem:.6g}") if math.isfinite(known.sem) else None}


def _series(result: ResultRecords, key: str, series: Sequence[str]) -> tuple[Any, Any]:
    """Colour and dash of the series."""
    others = [key_title(other) for other in variation(result).titled if other != key]
    title = ", ".join(dict.fromkeys(others)) or None
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1)
    return axes.series_color(series, title, legend), axes.series_dash(series, title, legend)


def _is_wide(sizes: Sequence[float]) -> bool:
    return sizes[0] > 0 and sizes[-1] / sizes[0] > axes.WIDE


def _scale(sizes: Sequence[float]) -> alt.Scale:
    """From zero, or logarithmic for sizes that span a wide range."""
    if _is_wide(sizes):
        return alt.Scale(type="log", domain=[sizes[0] / 1.15, sizes[-1] * 1.15], nice=False)
    return alt.Scale(domain=[0, 1.03 * sizes[-1] or 1], nice=False)


def _description(frame: pl.DataFrame, look: BySizeStyle, unit: str) -> str:
    told = "; ".join(
        f"{row['series']}{', ' if row['series'] else ''}{row['size']:g} {unit}: {row['value']:{look.format}}"
        for row in frame.iter_rows(named=True)
    )
    return f"Marks of {look.quantity} by size. {told}."
