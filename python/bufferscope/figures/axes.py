"""Axes and colours: every figure of a result has the same time axis, and the same colour for a point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import zooming
from bufferscope.figures.source import ResultRecords, duration_s, points, sweep_title
from bufferscope.model.network import CARRYING, traffic_named

if TYPE_CHECKING:
    from altair.typing import Optional

Channel = TypeVar("Channel", "alt.X", "alt.Y")

TIME = "time (s)"
WIDE = 50
"""Positive values that span more than this factor get a logarithmic axis, so that small ones can be read as well."""

COLOURS = 8
"""The most series that have a colour each."""
DASHES = ([1, 0], [6, 3], [2, 3], [8, 3, 2, 3])
SHAPES = ("circle", "triangle-up", "square", "cross")
"""The dashes and the marks of the first eight series, of the next eight, and so on."""
MOST_NAMES = 4
"""The most lines that get names beside the plot; for more lines, the legend is quicker to read."""
LONGEST_NAME = 18
"""The most characters of a name for which there is room."""
CHARACTER = 7.5
"""The mean width of a name's character in pixels."""
GAP = 7
"""Pixels between a line's end and its name."""


def time_axis(result: ResultRecords) -> alt.X:
    """The time axis that all figures over time share."""
    return alt.X("time_s:Q", title=TIME, scale=time_scale(result))


def time_scale(result: ResultRecords) -> alt.Scale:
    """The scale of the time axis: from 0 to the end of the longest run, or a part of that."""
    return alt.Scale(domain=zooming.domain(duration_s(result)), nice=False)


def fitted(channel: type[Channel], field: str, title: str, values: pl.Series, room: float = 0) -> Channel:
    """An axis for positive values: linear from zero, or, for a wide span, logarithmic with round ticks (1, 2, 5, ...).

    `room` is the share of the axis that stays free above the greatest value.
    """
    low, high = span(values)
    if not is_wide(values):
        domain = [min(0.0, 1.03 * low), 1.03 * high / (1 - room) if high > 0 else 1.0]
        return channel(f"{field}:Q", title=title, scale=alt.Scale(domain=domain, nice=False))
    low, high = low * 0.9, high * 1.1
    scale = alt.Scale(type="log", domain=[low, high * (high / low) ** (room / (1 - room))], nice=False)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    return channel(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(values=ticks, format=",~g"))


def names(result: ResultRecords) -> list[str]:
    """The names of lines in figures over time: the points, or, for a single point, its traffic that has a goodput."""
    labels = [point.label for point in points(result)]
    if len(labels) > 1:
        return labels
    return [entry["name"] for entry in traffic_named(result.runs[0].scenario, *CARRYING)]


def room_for_names(result: ResultRecords) -> int:
    """The pixels that lines' names take beside every plot over time; 0 if there are too many or too long names."""
    written = names(result)
    longest = max(map(len, written), default=0)
    fits = 2 <= len(written) <= MOST_NAMES and longest <= LONGEST_NAME
    return math.ceil(longest * CHARACTER) + GAP if fits else 0


def row_axis(result: ResultRecords) -> alt.Y:
    """An axis with one row per point, in the sweep's order, for figures that compare points."""
    axis = alt.Axis(grid=False, ticks=False, domain=False, labelFontSize=14)
    return alt.Y("point:N", sort=None, title=sweep_title(result) or None, axis=axis)


def point_color(result: ResultRecords, *, legend: bool = True) -> Optional[alt.Color]:
    """Colour by point, in the sweep's order; none for a single point, or for more points than there are colours."""
    labels = [point.label for point in points(result)]
    if not 2 <= len(labels) <= COLOURS:
        return alt.Undefined
    key = alt.Legend(symbolType="stroke", symbolOpacity=1) if legend else None
    return alt.Color("point:N", title=sweep_title(result), sort=None, scale=alt.Scale(domain=labels), legend=key)


def series_color(
    names: Sequence[str], title: str | None, legend: alt.Legend | None, field: str = "series"
) -> Optional[alt.Color]:
    """Colour by the name of a series; from the ninth on, colours come again, with another dash (`series_dash`).

    None for more series than there are colours with different dashes.
    """
    if len(names) > COLOURS * len(DASHES):
        return alt.Undefined
    return alt.Color(f"{field}:N", title=title, sort=None, scale=alt.Scale(domain=list(names)), legend=legend)


def series_dash(names: Sequence[str], title: str | None, legend: alt.Legend | None) -> Optional[alt.StrokeDash]:
    """A dash for each eight series, which have different colours; none for up to eight series.

    It has the same names and title as the colour, so that both share a legend.
    """
    if not COLOURS < len(names) <= COLOURS * len(DASHES):
        return alt.Undefined
    dashes = [DASHES[index // COLOURS % len(DASHES)] for index in range(len(names))]
    scale = alt.Scale(domain=list(names), range=dashes)
    return alt.StrokeDash("series:N", title=title, sort=None, scale=scale, legend=legend)


def series_shape(names: Sequence[str], title: str | None, legend: alt.Legend | None) -> Optional[alt.Shape]:
    """The same as `series_dash` for marks without lines: a shape for each eight series."""
    if not COLOURS < len(names) <= COLOURS * len(SHAPES):
        return alt.Undefined
    shapes = [SHAPES[index // COLOURS % len(SHAPES)] for index in range(len(names))]
    scale = alt.Scale(domain=list(names), range=shapes)
    return alt.Shape("series:N", title=title, sort=None, scale=scale, legend=legend)


def dot_color(result: ResultRecords) -> Optional[alt.Color]:
    """The same for figures of dots, whose legend has dots."""
    color = point_color(result)
    return color.legend(symbolType="circle", symbolOpacity=1) if isinstance(color, alt.Color) else color


def point_tooltip(result: ResultRecords) -> list[alt.Tooltip]:
    """The point for a tooltip, if there are several points."""
    return [alt.Tooltip("point:N", title=sweep_title(result))] if len(points(result)) > 1 else []


def tooltip(channel: alt.X | alt.Y) -> alt.Tooltip:
    """The value on an axis for a tooltip, with the axis' title as its name."""
    code = written(channel)
    return alt.Tooltip(f"{code['field']}:Q", title=code["title"], format=",.4~g")


def written(channel: alt.X | alt.Y | alt.Color | alt.Tooltip) -> dict[str, Any]:
    """A channel as the specification has it: its field, its title, ..."""
    code: Any = channel.to_dict(validate=False, context={"data": None})  # the whole chart is validated
    return dict(code)


def is_wide(values: pl.Series) -> bool:
    """Whether positive values have such a wide span that their axis is logarithmic."""
    low, high = span(values)
    return low > 0 and high / low > WIDE


def span(values: pl.Series) -> tuple[float, float]:
    """The least and the greatest of the values that are numbers; (0, 0) if none is."""
    array = values.drop_nulls().to_numpy()
    known = array[np.isfinite(array)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)


def is_known(column: str) -> pl.Expr:
    """Whether a row's value is a number: neither null nor NaN nor infinite."""
    return pl.col(column).is_not_null() & pl.col(column).cast(pl.Float64).is_finite()
