"""The common parts of figures: thinned series, lanes with marks for losses, and the frame."""

import textwrap
from collections.abc import Sequence

import altair as alt
import polars as pl

from bufferscope.figures import axes, style
from bufferscope.figures.decimate import decimate
from bufferscope.figures.source import ResultRecords, duration_s, points

Layer = alt.Chart | alt.LayerChart

LANE = 9
"""Height in pixels of the strip in which one point's lost probes are marked."""
ROW = 44
"""Height in pixels of a row in figures that compare points."""


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

    Several rows in one pixel column share a mark; the tooltip has their number.
    """
    if missing.is_empty():
        return []
    step = duration_s(result) / style.WIDTH
    column = (pl.col("time_s") / step).floor().alias("column")
    cells = missing.group_by("point", column, maintain_order=True).agg(pl.col("time_s").min(), pl.len().alias(word))
    tips = [alt.Tooltip("time_s:Q", title="time (s)"), *axes.point_tooltip(result), alt.Tooltip(f"{word}:Q")]
    return [
        alt.Chart(cells.filter(point=point.label).drop("column"))
        .mark_tick(style="lost", clip=True, orient="vertical", thickness=1.5, height=LANE - 2)
        .encode(
            x=axes.time_axis(result),
            y=alt.value(lane * LANE + LANE / 2),
            color=axes.point_color(result),
            tooltip=tips,
        )
        for lane, point in enumerate(points(result))
        if point.label in cells["point"].to_list()
    ]


def headroom(result: ResultRecords, missing: pl.DataFrame) -> float:
    """The share of the plot's height that the lanes take."""
    return 0.0 if missing.is_empty() else (len(points(result)) * LANE + 4) / style.HEIGHT


def framed(
    layers: Sequence[Layer], title: str, subtitle: str, description: str, height: int = style.HEIGHT
) -> alt.LayerChart:
    """The layers as one figure with a title, an explanation, and a description for readers who can't see it."""
    heading = alt.TitleParams(title, subtitle=lines(subtitle)) if subtitle else alt.TitleParams(title)
    chart = alt.layer(*layers).properties(width=style.WIDTH, height=height, title=heading, description=description)
    configured: alt.LayerChart = chart.configure(**style.config(style.LIGHT))
    return configured


def lines(text: str) -> list[str]:
    """A subtitle in lines that fit above a figure."""
    return textwrap.wrap(text, 105, break_long_words=False, break_on_hyphens=False)


def rows_height(result: ResultRecords) -> int:
    """The height of a figure with one row per point."""
    return max(2 * ROW, ROW * len(points(result)))


def counts_note(counts: dict[str, int]) -> str:
    """`50p 3, 100p 1` for the points (by label) whose count is not zero."""
    return ", ".join(f"{label}\N{NO-BREAK SPACE}{count}".strip() for label, count in counts.items() if count)


def sentence(*sentences: str) -> str:
    """The non-empty sentences in one line."""
    return " ".join(part for part in sentences if part)
