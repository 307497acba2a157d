"""Figure: the round-trip time of every probe by its sending time; lost probes are marked at the upper edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, ends, multiples, parts, pointer, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, over_time, points, probe_path
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.rtt import echoes
from bufferscope.model.network import probers

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure

MS = 1e6


@figure(needs=("probes",), fits=probers)
def rtt(result: ResultRecords) -> Figure:
    """Round-trip times in ms, one line per point; lines have gaps where probes were lost, and marks above for these."""
    probe_path(result.runs[0])
    frame = over_time(result, _probes)
    answered = frame.drop_nulls("rtt_ms")
    if answered.is_empty():
        raise NoDataError(f"rtt: none of the {frame.height} probes sent was answered")
    lost = frame.filter(pl.col("rtt_ms").is_null())
    lines = repetitions.drawn(result, frame, "rtt_ms")
    x, color = axes.time_axis(result), axes.point_color(result)
    y = axes.fitted(alt.Y, "rtt_ms", "round-trip time (ms)", answered["rtt_ms"], parts.headroom(result, lost))
    layers = repetitions.layers(lines, x, y, color)
    layers += ends.layers(result, lines.strong, y, color, ends.top(lines, "rtt_ms"))
    layers.append(pointer.hover(lines.strong, x, y, color, result, repetitions.tooltips(lines)))
    layers += parts.lanes(result, lost, "lost")
    logarithmic = "Logarithmic scale." if axes.is_wide(answered["rtt_ms"]) else ""
    subtitle = parts.sentence(_loss_note(result, frame), logarithmic, repetitions.note(result))
    chart = multiples.framed(result, layers, ("Round-trip time", subtitle), _description(result, frame))
    return pointer.over_time(chart, result)


def _probes(run: RunRecords) -> pl.DataFrame:
    rtt_ms = (pl.col("rtt_ns") / MS).round(3).alias("rtt_ms")
    return echoes(run).sort("sent_ns").select(pl.col("sent_ns").alias("t_ns"), rtt_ms)


def _loss_note(result: ResultRecords, frame: pl.DataFrame) -> str:
    """How many probes were lost at each point, in all repetitions together."""
    lost = {point.label: frame.filter(point=point.label)["rtt_ms"].null_count() for point in points(result)}
    if not any(lost.values()):
        return "No probe was lost."
    each = " each" if len(lost) > 1 else ""
    together = " of all repetitions" if repetitions.most(result) > 1 else ""
    return f"Marks at the top: lost probes{together} ({parts.counts_note(lost)} of {frame.height // len(lost)}{each})."


def _description(result: ResultRecords, frame: pl.DataFrame) -> str:
    told = []
    for point in points(result):
        own = frame.filter(point=point.label)["rtt_ms"]
        times = own.drop_nulls().to_numpy()
        mean = f"{times.mean():.1f} ms on average, at most {times.max():.1f} ms" if len(times) else "none answered"
        told.append(f"{point.label or 'all probes'}: {mean}, {own.null_count()} of {len(own)} lost")
    return f"Line chart of the probes' round-trip time over time. {'; '.join(told)}."
