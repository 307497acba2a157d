"""Figure: how long each page or file took, over the time at which it was asked for."""

import altair as alt
import polars as pl

from bufferscope.figures import axes, parts
from bufferscope.figures.source import NoDataError, ResultRecords, over_time, points
from bufferscope.metrics.network import NANOSECONDS
from bufferscope.metrics.records import RunRecords


def download_time(result: ResultRecords) -> alt.LayerChart:
    """Seconds from the first packet to the last byte, a dot a transfer; the mean as a dashed line.

    A transfer that the run's end cut off is a mark at the upper edge, where it began.
    """
    frame = over_time(result, _transfers)
    finished = frame.drop_nulls("seconds")
    if finished.is_empty():
        what = "no transfer was begun" if frame.is_empty() else f"none of {frame.height} transfers was finished"
        raise NoDataError(f"download_time: {what}")
    unfinished = frame.filter(pl.col("seconds").is_null())
    kept = parts.thinned(finished, "seconds")
    means = finished.group_by("point", maintain_order=True).agg(pl.col("seconds").mean().round(4))
    x, color = axes.time_axis(result), axes.point_color(result)
    room = parts.headroom(result, unfinished)
    y = axes.fitted(alt.Y, "seconds", "download time (s)", finished["seconds"], room)
    line = alt.Chart(kept).mark_line(strokeWidth=1, opacity=0.45, clip=True).encode(x=x, y=y, color=color)
    dots = alt.Chart(kept).mark_point(clip=True).encode(x=x, y=y, color=color)
    rules = alt.Chart(means).mark_rule(style="limit").encode(y=y, color=color)
    layers = [line, dots, rules, *parts.lanes(result, unfinished, "unfinished"), parts.hover(kept, x, y, result)]
    subtitle = parts.sentence("Dashed: mean.", _unfinished_note(result, unfinished), parts.repetition_note(result))
    return parts.zoomable(parts.framed(layers, "Download time", subtitle, _description(result, frame)))


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
