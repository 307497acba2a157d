"""Names at the right ends of a figure's lines, in the colours of the lines, so that readers don't need the legend.

All figures over time leave the same room beside their plots, with or without names: the figures of a result stand below
one another, and their time axes are aligned. On small screens the page leaves the names out (`page.js`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, pointer, repetitions, style
from bufferscope.figures.constant import constant
from bufferscope.figures.source import ResultRecords, duration_s

LINE = 17
"""Height of a name in pixels."""
FARTHEST = 2.1 * LINE
"""How far a name may be moved away from the end of its line to make room for other names."""
LATE = 0.95
"""The share of the time axis after which a line must end: a name at the edge would not stand beside a shorter line."""


def layers(
    result: ResultRecords, lines: pl.DataFrame, y: alt.Y, color: Any, highest: float, series: str = "point"
) -> list[parts.Layer]:
    """The names of the lines as a layer; none if there is no room, or if they would not stand beside their lines.

    `lines` has the columns `time_s`, `series` and the field of `y`. The axis of `y` goes from zero to about `highest`,
    unless it has its own domain.
    """
    field = axes.written(y)["field"]
    isolated = pointer.isolating(color)
    last = lines.drop_nulls(field).group_by(series, maintain_order=True).last()
    late = last.filter(pl.col("time_s") >= LATE * duration_s(result))
    if not axes.room_for_names(result) or not isolated or late.height != len(axes.names(result)):
        return []
    axis = _Axis(y, highest)
    wanted = [axis.pixel(value) for value in late[field]]
    placed = apart(wanted, LINE, style.HEIGHT)
    if any(abs(own - position) > FARTHEST for own, position in zip(wanted, placed, strict=True)):
        return []
    named = late.select(series, at=pl.Series([axis.value(position) for position in placed]))
    text = alt.Chart(named, name=pointer.NAMES).mark_text(
        style=pointer.NAMES, align="left", baseline="middle", dx=axes.GAP, clip=False, aria=False
    )
    return [
        text.encode(
            x=constant("X", "width"),
            y=alt.Y("at:Q", title=axes.written(y)["title"]),
            text=alt.Text(f"{series}:N"),
            color=color,
            opacity=pointer.dimmed_or_moved(isolated),
        )
    ]


def top(lines: repetitions.DrawnLines, value: str) -> float:
    """The greatest value of the lines and their bands."""
    columns = [lines.strong[value], lines.light[value]]
    columns += [lines.strong[repetitions.HIGH]] if lines.is_median else []
    return max((axes.span(column)[1] for column in columns if column.drop_nulls().len()), default=0.0)


def apart(wanted: Sequence[float], gap: float, end: float) -> list[float]:
    """Positions from 0 to `end`, close to the `wanted` ones and in their order, with at least `gap` between neighbours.

    Positions that would be too close together form a block, whose middle is the mean of its wanted positions.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[list[int]] = []
    for index in order:
        blocks.append([index])
        while len(blocks) > 1 and any(
            _start(wanted, low, gap, end) + len(low) * gap > _start(wanted, high, gap, end)
            for low, high in pairwise(blocks[-2:])
        ):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    positions = dict.fromkeys(order, 0.0)
    for block in blocks:
        start = _start(wanted, block, gap, end)
        positions |= {index: start + step * gap for step, index in enumerate(block)}
    return [positions[index] for index in range(len(wanted))]


def _start(wanted: Sequence[float], block: Sequence[int], gap: float, end: float) -> float:
    """The first position of a block, so that the block lies between 0 and `end`."""
    length = (len(block) - 1) * gap
    middle = sum(wanted[index] for index in block) / len(block)
    return min(max(middle - length / 2, 0), end - length)


class _Axis:
    """A value axis of the plot's height, roughly as drawn (linear axes are rounded up by at most an eighth)."""

    def __init__(self, y: alt.Y, highest: float) -> None:
        scale = axes.written(y).get("scale", {})
        self._is_log = scale.get("type") == "log"
        low, high = scale.get("domain") or (0.0, highest or 1.0)
        self._low, self._high = self._scaled(low), self._scaled(high)

    def pixel(self, value: float) -> float:
        """The position of a value, in pixels above the axis' lower end."""
        return (self._scaled(value) - self._low) / (self._high - self._low) * style.HEIGHT

    def value(self, pixel: float) -> float:
        """The value at this position."""
        scaled = self._low + pixel / style.HEIGHT * (self._high - self._low)
        return float(f"{math.exp(scaled) if self._is_log else scaled:.6g}")

    def _scaled(self, value: float) -> float:
        return math.log(value) if self._is_log else value
