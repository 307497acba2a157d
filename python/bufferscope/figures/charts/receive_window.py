"""Figure: the window that a TCP receiver advertises against how far the connection has got."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, connections, multiples, parts, pointer
from bufferscope.figures.decimate import decimate
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, points
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import traffic_named, traffic_of_flow

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure

MEGA = 1e6
COLUMNS = 200
"""The steps of the axis in which a connection keeps its lowest and its highest window."""


@figure(needs=("flows",))
def receive_window(result: ResultRecords) -> Figure:
    """One line per connection: the window that its receiver had last advertised when that much was acknowledged.

    Of several repetitions, the first is shown. Connections of entries that carry files or bulk data over TCP count.
    """
    frames = [_samples(point.first).with_columns(point=pl.lit(point.label)) for point in points(result)]
    frame = pl.concat(frames).filter(axes.is_known("acknowledged_mb"), axes.is_known("window_mb"))
    frame = connections.named(result, frame)
    if frame.is_empty():
        raise NoDataError("receive_window: no samples of a TCP connection")
    columns = COLUMNS
    thinned = decimate(frame, "acknowledged_mb", "window_mb", ["point", "flow"], columns)
    while thinned.height > parts.MOST_ROWS and columns > 1:
        columns //= 2
        thinned = decimate(frame, "acknowledged_mb", "window_mb", ["point", "flow"], columns)
    x = alt.X("acknowledged_mb:Q", title="acknowledged (MB)", scale=_from_zero(frame["acknowledged_mb"]))
    y = alt.Y("window_mb:Q", title="advertised window (MB)", scale=_from_zero(frame["window_mb"]))
    color = connections.color(result, frame)
    isolated = pointer.isolating(color)
    several = frame.n_unique(["point", "flow"]) > len(points(result))
    line = alt.Chart(thinned).mark_line(strokeWidth=1.25 if several else 2, clip=True)
    line = line.encode(
        x=x, y=y, color=color, detail=alt.Detail("flow:N"), opacity=pointer.dimmed(isolated, 0.6 if several else 1)
    )
    layers: list[parts.Layer] = [
        *pointer.clickable([line], color),
        pointer.hover(thinned, x, y, color, result, connections.tips(frame)),
    ]
    note = "One line per connection." if several else ""
    return multiples.framed(result, layers, ("Advertised receive window", note), _description(result, frame))


def _samples(run: RunRecords) -> pl.DataFrame:
    """`flow, acknowledged_mb, window_mb` of the connections, in the order of time."""
    carrying = [entry["name"] for entry in traffic_named(run.scenario, "tcp")]
    shown = run.flows.filter(traffic_of_flow().is_in(carrying) & pl.col("rwnd_bytes").is_not_null())
    return shown.sort("flow", "t_ns").select(
        "flow",
        (pl.col("delivered_bytes") / MEGA).round(4).alias("acknowledged_mb"),
        (pl.col("rwnd_bytes") / MEGA).round(4).alias("window_mb"),
    )


def _from_zero(values: pl.Series) -> alt.Scale:
    return alt.Scale(domain=[0, 1.05 * axes.span(values)[1] or 1], nice=False)


def _description(result: ResultRecords, frame: pl.DataFrame) -> str:
    told = []
    for point in points(result):
        largest = frame.filter(point=point.label)["window_mb"].max()
        if isinstance(largest, float):
            told.append(f"{point.label or 'the receiver'}: at most {largest:.3g} MB")
    return f"Line chart of the advertised window against the sequence number. {'; '.join(told)}."
