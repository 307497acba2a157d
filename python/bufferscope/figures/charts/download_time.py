"""Figure: how long each page or file took, by the time at which it was requested."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, multiples, parts, pointer, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, over_time, points
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS, traffic_named
from bufferscope.model.scenario import Scenario
from bufferscope.stats.estimate import estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure


def _has_transfers(scenario: Scenario) -> bool:
    """Whether transfers of the scenario's traffic have an end."""
    files = any(entry.get("bytes") for entry in traffic_named(scenario, "tcp"))
    return files or bool(traffic_named(scenario, "web", "dns"))


@figure(needs=("transfers",), fits=_has_transfers)
def download_time(result: ResultRecords) -> Figure:
    """Seconds from the first packet to the last byte, with one dot per transfer; a dashed line is the mean.

    With repetitions, the line is the mean of their means, and a band is its 95 % confidence interval. A transfer that
    was unfinished when the run ended is a mark at the upper edge, at its start time.
    """
    frame = over_time(result, _transfers)
    finished = frame.drop_nulls("seconds")
    if finished.is_empty():
        what = "no transfer was begun" if frame.is_empty() else f"none of {frame.height} transfers was finished"
        raise NoDataError(f"download_time: {what}")
    unfinished = frame.filter(pl.col("seconds").is_null())
    kept = parts.thinned(finished, "seconds", ["point", "repetition"])
    means = _means(result, finished)
    x, color = axes.time_axis(result), axes.point_color(result)
    room = parts.headroom(result, unfinished)
    y = axes.fitted(alt.Y, "seconds", "download time (s)", finished["seconds"], room)
    repeated = repetitions.most(result) > 1
    isolated = pointer.isolating(color)
    fainter = pointer.dimmed(isolated, 0.45)
    dots = alt.Chart(kept).mark_point(clip=True, size=20 if repeated else 45).encode(x=x, y=y, color=color)
    dots = dots.encode(opacity=fainter if repeated else pointer.dimmed(isolated))
    line = alt.Chart(kept).mark_line(strokeWidth=1, clip=True).encode(x=x, y=y, color=color, opacity=fainter)
    band = alt.Chart(means.drop_nulls("low")).mark_rect(clip=True)
    band = band.encode(
        y=alt.Y("low:Q", title=axes.written(y)["title"]),
        y2="high:Q",
        color=color,
        opacity=pointer.dimmed(isolated, 0.2),
    )
    rules = alt.Chart(means).mark_rule(style="limit").encode(y=y, color=color, opacity=pointer.dimmed(isolated, 0.9))
    layers = [
        *pointer.clickable([dots, band, rules] if repeated else [line, dots, rules], color),
        pointer.hover(kept, x, y, color, result),
        *parts.lanes(result, unfinished, "unfinished"),
    ]
    mean = "Dashed: mean of the repetitions; band: its 95 % confidence interval." if repeated else "Dashed: mean."
    subtitle = parts.sentence(repetitions.pooled_note(result), mean, _unfinished_note(result, unfinished))
    chart = multiples.framed(result, layers, ("Download time", subtitle), _description(result, frame))
    return pointer.over_time(chart, result)


def _means(result: ResultRecords, finished: pl.DataFrame) -> pl.DataFrame:
    """The mean of each point's repetitions with its confidence interval (null without repetitions)."""
    rows = []
    for point in points(result):
        own = finished.filter(point=point.label).group_by("repetition").agg(pl.col("seconds").mean())["seconds"]
        if len(own):
            known = estimate(own.to_list())
            rows.append(
                (point.label, *(value if isfinite(value) else None for value in (known.mean, known.low, known.high)))
            )
    schema = {"point": pl.String, "seconds": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.selectors.float().round(4))


def _transfers(run: RunRecords) -> pl.DataFrame:
    seconds = ((pl.col("finished_ns") - pl.col("started_ns")) / NANOSECONDS).round(4).alias("seconds")
    return run.transfers.sort("started_ns").select(pl.col("started_ns").alias("t_ns"), seconds)


def _unfinished_note(result: ResultRecords, unfinished: pl.DataFrame) -> str:
    if unfinished.is_empty():
        return ""
    counts = {point.label: unfinished.filter(point=point.label).height for point in points(result)}
    return f"Marks at the top: unfinished when the run ended ({parts.counts_note(counts)})."


def _description(result: ResultRecords, frame: pl.DataFrame) -> str:
    told = []
    for point in points(result):
        own = frame.filter(point=point.label)["seconds"]
        times = own.drop_nulls().to_numpy()
        mean = f"{times.mean():.2f} s on average, at most {times.max():.2f} s" if len(times) else "none finished"
        told.append(f"{point.label or 'all transfers'}: {mean}, {own.null_count()} of {len(own)} unfinished")
    return f"Download times over time. {'; '.join(told)}."
