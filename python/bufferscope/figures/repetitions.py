"""Repetitions in figures over time: a few are drawn as single lines, many as a median with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, pointer
from bufferscope.figures.source import ResultRecords, duration_s, points

MANY = 8
"""From this number of repetitions on, single lines would hide each other."""
BINS = 120
"""The number of time steps in which many repetitions are summarized."""
LIGHT = 0.3
"""Opacity of all repetitions but the first."""
BAND = 0.2
"""Opacity of the band."""
GAPS: Literal["break-paths-show-domains"] = "break-paths-show-domains"
"""How null values are drawn: as gaps in the line."""
LOW, HIGH = "p5", "p95"
"""The columns with the ends of the band."""


@dataclass(frozen=True)
class DrawnLines:
    """The thinned rows of a figure's lines; their columns include `point`, `time_s`, the value and grouping columns."""

    strong: pl.DataFrame
    """The first repetition, or the median of many repetitions, which also has the columns `p5` and `p95`."""
    light: pl.DataFrame
    """The other repetitions, with their number in `repetition`; empty if there are none, or so many that a median is
    drawn."""
    is_median: bool


def most(result: ResultRecords) -> int:
    """The largest number of repetitions of any point."""
    return max(len(point.runs) for point in points(result))


def are_many(result: ResultRecords) -> bool:
    """Whether the repetitions are drawn as a median and a band."""
    return most(result) >= MANY


def drawn(result: ResultRecords, frame: pl.DataFrame, value: str, by: Sequence[str] = ("point",)) -> DrawnLines:
    """The rows of `frame` to draw (`time_s`, `repetition`, `value` and the columns of `by`); null values are gaps."""
    if are_many(result):
        return DrawnLines(_median(result, frame, value, by), frame.clear(), is_median=True)
    first = frame.filter(repetition=0).drop("repetition")
    others = frame.filter(pl.col("repetition") > 0)
    series = max(1, others.n_unique([*by, "repetition"]))
    light = parts.thinned(others, value, [*by, "repetition"], columns=max(20, 720 // series))
    return DrawnLines(parts.thinned(first, value, by), light, is_median=False)


def layers(
    lines: DrawnLines,
    x: alt.X,
    y: alt.Y,
    color: Any,
    detail: Sequence[str] = (),
    dash: Any = None,
    opacity: float = 1,
) -> list[parts.Layer]:
    """The lines in their colours, with the light lines or bands behind them; the legend lets the user isolate series.

    `detail` names the columns that distinguish lines of the same colour.
    """
    dash = alt.Undefined if dash is None else dash
    encoding = {"x": x, "y": y, "color": color}
    isolated = pointer.isolating(color, dash)
    found: list[parts.Layer] = []
    if not lines.light.is_empty():
        light = alt.Chart(lines.light).mark_line(strokeWidth=1, clip=True, invalid=GAPS)
        own = {"opacity": pointer.dimmed(isolated, LIGHT * opacity), "detail": _details([*detail, "repetition:N"])}
        found.append(light.encode(**encoding, **own, strokeDash=dash))
    if lines.is_median:
        ends = {"y": alt.Y(f"{LOW}:Q", title=axes.written(y)["title"]), "y2": alt.Y2(f"{HIGH}:Q")}
        band = alt.Chart(lines.strong).mark_area(clip=True, invalid=GAPS)
        shade = pointer.dimmed(pointer.isolating(color), BAND)
        found.append(band.encode(**encoding | ends, opacity=shade, detail=_details(detail)))
    strong = alt.Chart(lines.strong).mark_line(clip=True, invalid=GAPS)
    strong = strong.encode(
        **encoding, opacity=pointer.dimmed(isolated, opacity), detail=_details(detail) or alt.Undefined, strokeDash=dash
    )
    return pointer.clickable([*found, strong], color, dash)


def _details(columns: Sequence[str]) -> list[alt.Detail]:
    return [alt.Detail(column) for column in columns]


def tooltips(lines: DrawnLines) -> list[alt.Tooltip]:
    """The ends of the band for a tooltip, if there is a band."""
    if not lines.is_median:
        return []
    return [alt.Tooltip(f"{end}:Q", format=",.4~g") for end in (LOW, HIGH)]


def pooled_note(result: ResultRecords) -> str:
    """The note that a figure shows all repetitions as one sample; empty for a single repetition."""
    return f"All {most(result)} repetitions together." if most(result) > 1 else ""


def note(result: ResultRecords) -> str:
    """The note on how the figure shows repetitions; empty for a single repetition."""
    n = most(result)
    if n == 1:
        return ""
    if are_many(result):
        return f"Line: median of {n} repetitions; band: their 5th to 95th percentile."
    return f"Strong line: the first of {n} repetitions (seed {points(result)[0].first.seed}); light: the others."


def _median(result: ResultRecords, frame: pl.DataFrame, value: str, by: Sequence[str]) -> pl.DataFrame:
    """Median, 5th and 95th percentile of all repetitions' values in each time step; null if none has a value."""
    bins = max(1, min(BINS, parts.MOST_ROWS // frame.n_unique([*by])))
    width = duration_s(result) / bins or 1.0
    step = (pl.col("time_s") / width).floor().clip(0, bins - 1)
    quantiles = {value: 0.5, LOW: 0.05, HIGH: 0.95}
    return (
        frame.group_by(*by, ((step + 0.5) * width).round(6).alias("time_s"), maintain_order=True)
        .agg(pl.col(value).quantile(share, "linear").round(4).alias(name) for name, share in quantiles.items())
        .sort(*by, "time_s", maintain_order=True)
    )
