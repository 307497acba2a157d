"""Marks with their names beside them: layers of words and of thin lines from the words to the marks.

`labels` places the words for the least width of the plot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, labels
from bufferscope.figures.labels import Box, Label, Position

if TYPE_CHECKING:
    from bufferscope.figures.chart import Layer


@dataclass(frozen=True)
class PlotAxis:
    """An axis of a plot: the values at its ends, and its length in pixels."""

    low: float
    high: float
    length: float
    is_log: bool = False

    @classmethod
    def of(cls, channel: alt.X | alt.Y, length: float) -> PlotAxis:
        """The axis of a channel that has its own domain."""
        scale = axes.written(channel)["scale"]
        low, high = scale["domain"]
        return cls(low, high, length, scale.get("type") == "log")

    def pixel(self, value: float) -> float:
        """The distance of a value from the axis' lower end."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        return (self._scaled(value) - low) / (high - low) * self.length

    def value(self, pixel: float) -> float:
        """The value at this distance from the lower end."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        scaled = low + pixel / self.length * (high - low)
        return float(f"{math.exp(scaled) if self.is_log else scaled:.6g}")

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.is_log else value


@dataclass(frozen=True)
class Plane:
    """The axes of a plot of the least width."""

    across: PlotAxis
    up: PlotAxis

    def position(self, x: float, y: float) -> Position:
        """Where a mark is, in pixels from the upper left corner."""
        return self.across.pixel(x), self.up.length - self.up.pixel(y)

    def values(self, position: Position) -> tuple[float, float]:
        """The values at a position."""
        return self.across.value(position[0]), self.up.value(self.up.length - position[1])


@dataclass(frozen=True)
class Mark:
    """A mark that has a name, and the kind that its colour stands for."""

    x: float
    y: float
    name: str
    kind: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What labels keep off: boxes with other words, and positions that they avoid if they can."""

    kept_free: Sequence[Box] = ()
    avoided: Sequence[Position] = ()


def placed(marks: Sequence[Mark], plane: Plane, kinds: Sequence[str], around: Surroundings) -> list[Label]:
    """The labels of the marks, at the positions found for them; marks that nearly coincide share one."""
    positions = [plane.position(mark.x, mark.y) for mark in marks]
    groups = []
    for members in labels.shared(positions, [mark.kind for mark in marks]):
        own = [marks[index] for index in members]
        groups.append((members, labels.wrapped([mark.name for mark in own], [mark.kind for mark in own], kinds)))
    size = plane.across.length, plane.up.length
    return labels.place(positions, groups, size, around.kept_free, around.avoided)


def layers(
    marks: Sequence[Mark],
    plane: Plane,
    channels: tuple[alt.X, alt.Y, Any],
    kinds: Sequence[str] = ("",),
    around: Surroundings | None = None,
    opacity: Any = None,
) -> list[Layer]:
    """The names, in one label for marks that nearly coincide, and thin lines from the labels to the marks.

    `channels` are the plot's axes and its colour, which is by `kind`; `opacity` is that of the words.
    """
    x, y, _ = channels
    fields = axes.written(x)["field"], axes.written(y)["field"]
    positions = [plane.position(mark.x, mark.y) for mark in marks]
    found = placed(marks, plane, kinds, around or Surroundings())
    segments = [segment for label in found for segment in _segments(label, positions)]
    ends = [plane.values(start) + plane.values(end) for start, end in segments]
    names = (*fields, *(f"to_{field}" for field in fields))
    rule = alt.Chart(pl.DataFrame(ends, schema=dict.fromkeys(names, pl.Float64), orient="row"))
    drawn = rule.mark_rule(style="leader", aria=False).encode(x=x, y=y, x2=f"{names[2]}:Q", y2=f"{names[3]}:Q")
    return [drawn, *_words(found, plane, channels, fields, alt.Undefined if opacity is None else opacity)]


def _segments(label: Label, positions: Sequence[Position]) -> list[tuple[Position, Position]]:
    """The line of a label, those between its marks, and one beside its lines if there are several."""
    chain = sorted(positions[index] for index in label.members)
    segments = [(positions[label.mark], label.end), *pairwise(chain)]
    if label.align != "center" and len(label.lines) > 1:
        bottom = label.top + labels.LINE * len(label.lines)
        segments.append(((label.anchor, label.top), (label.anchor, bottom)))
    return segments


def _words(
    found: Sequence[Label],
    plane: Plane,
    channels: tuple[alt.X, alt.Y, Any],
    fields: tuple[str, str],
    opacity: Any,
) -> list[Layer]:
    x, y, color = channels
    drawn: list[Layer] = []
    for align, aside in zip(labels.ALIGNS, (4, 0, -4), strict=True):
        rows = []
        for label in (label for label in found if label.align == align):
            for number, (words, kind) in enumerate(label.lines):
                values = plane.values((label.anchor, label.top + labels.LINE * (number + 0.5)))
                rows.append({"words": words, "kind": kind} | dict(zip(fields, values, strict=True)))
        if rows:
            text = alt.Chart(pl.DataFrame(rows)).mark_text(
                style="label", align=align, baseline="middle", dx=aside, clip=False
            )
            drawn.append(text.encode(x=x, y=y, text="words:N", color=color, opacity=opacity))
    return drawn
