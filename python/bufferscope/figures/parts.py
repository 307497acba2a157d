"""The common parts of figures: thinned series, lanes with marks for losses, and the frame."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, pointer, style
from bufferscope.figures.constant import constant
from bufferscope.figures.decimate import decimate
from bufferscope.figures.source import ResultRecords, duration_s, points

if TYPE_CHECKING:
    from bufferscope.figures import chart as charts
    from bufferscope.figures.chart import LayerFigure

Layer: TypeAlias = "charts.Layer"

LANE = 9
"""Height in pixels of the strip in which one point's lost probes are marked."""
PANEL_HEIGHT = 110
"""Height in pixels of a panel in figures with one panel per point (`multiples.py`)."""
ROW = 44
"""Height in pixels of a row in figures that compare points."""
MOST_COUNTS = 12
"""The most points whose counts are named in an explanation."""
MOST_ROWS = 5000
"""The most rows of a table in a chart: Altair refuses more, and more rows would make pages large."""


def thinned(
    frame: pl.DataFrame, y: str, by: Sequence[str] = ("point",), columns: int = style.WIDTH // 2
) -> pl.DataFrame:
    """Thin series over time to what the plot's pixel columns can show, and further if there are many series."""
    kept = decimate(frame, "time_s", y, list(by), columns)
    while kept.height > MOST_ROWS and columns > 1:
        columns = min(columns - 1, columns * MOST_ROWS // kept.height)
        kept = decimate(frame, "time_s", y, list(by), columns)
    return kept


def lanes(result: ResultRecords, missing: pl.DataFrame, word: str) -> list[Layer]:
    """Marks at the upper edge of the plot for the rows of `missing`: at `time_s`, in one lane per `point`.

    Several rows in one pixel column share a mark; the tooltip has their number. With one panel per point (`multiples`),
    each has a single lane.
    """
    if missing.is_empty():
        return []
    step = duration_s(result) / style.WIDTH or 1.0
    column = (pl.col("time_s") / step).floor().alias("column")
    cells = missing.group_by("point", column, maintain_order=True).agg(pl.col("time_s").min(), pl.len().alias(word))
    tips = [alt.Tooltip("time_s:Q", title="time (s)"), *axes.point_tooltip(result), alt.Tooltip(f"{word}:Q")]
    color = axes.point_color(result)
    known = points(result)
    return [
        alt.Chart(cells.filter(point=point.label).drop("column"))
        .mark_tick(style="lost", clip=True, orient="vertical", thickness=1.5, height=LANE - 2)
        .encode(
            x=axes.time_axis(result),
            y=constant("Y", (0 if len(known) > axes.COLOURS else lane) * LANE + LANE / 2),
            color=color,
            opacity=pointer.dimmed(pointer.isolating(color), 0.9),
            tooltip=tips,
        )
        for lane, point in enumerate(known)
        if point.label in cells["point"].to_list()
    ]


def headroom(result: ResultRecords, missing: pl.DataFrame) -> float:
    """The share of the plot's height that the lanes take."""
    if missing.is_empty():
        return 0.0
    many = len(points(result)) > axes.COLOURS
    return (LANE + 4) / PANEL_HEIGHT if many else (len(points(result)) * LANE + 4) / style.HEIGHT


def framed(
    layers: Sequence[Layer], title: str, subtitle: str, description: str, height: int = style.HEIGHT
) -> LayerFigure:
    """The layers as one figure with a title, an explanation, and a description for readers who can't see it."""
    from bufferscope.figures.chart import LayerFigure

    # Altair's methods, such as `properties`, copy all layers with their data.
    return LayerFigure(
        layer=list(layers),
        width=style.WIDTH,
        height=height,
        title=heading(title, subtitle),
        description=description,
        config=alt.Config(**style.config(style.LIGHT)),
    )


def heading(title: str, subtitle: str) -> alt.TitleParams:
    """A title with its explanation in lines, if there is one."""
    return alt.TitleParams(title, subtitle=lines(subtitle)) if subtitle else alt.TitleParams(title)


def lines(text: str) -> list[str]:
    """A subtitle in lines that fit above a figure."""
    return textwrap.wrap(text, 105, break_long_words=False, break_on_hyphens=False)


def rows_height(result: ResultRecords) -> int:
    """The height of a figure with one row per point."""
    return max(2 * ROW, ROW * len(points(result)))


def counts_note(counts: dict[str, int]) -> str:
    """`50p 3, 100p 1` for the points (by label) whose count is not zero; of many points, those with the largest."""
    known = {label: count for label, count in counts.items() if count}
    shown = sorted(known, key=lambda label: -known[label])[:MOST_COUNTS]
    told = [f"{label}\N{NO-BREAK SPACE}{count}".strip() for label, count in known.items() if label in shown]
    others = {label: count for label, count in known.items() if label not in shown}
    more = [f"{len(others)} others together\N{NO-BREAK SPACE}{sum(others.values())}"] if others else []
    return ", ".join([*told, *more])


def sentence(*sentences: str) -> str:
    """The non-empty sentences in one line."""
    return " ".join(part for part in sentences if part)
