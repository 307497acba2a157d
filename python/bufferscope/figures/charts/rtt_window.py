"""Figure: the round-trip time that a sender saw against the data that it had in flight.

After figure 4b of Gettys and Nichols, "Bufferbloat: dark buffers in the Internet" (2011). With a full queue at a
constant rate, the samples lie on a line through the origin, whose slope is the rate: more in flight only waits longer.
Two rates make two lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, connections, multiples, parts, pointer, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, points, pooled
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import OVER_TCP, traffic_named, traffic_of_flow

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure

MS = 1e6
CELLS = 120
"""The plot's columns and rows: samples of one point in one cell share a mark."""


@figure(needs=("flows",))
def rtt_window(result: ResultRecords) -> Figure:
    """A mark for each smoothed round-trip time (ms) and amount of data in flight (packets) of a TCP connection.

    Samples of all connections and repetitions are shown; equal ones share a mark, whose tooltip has their number.
    """
    samples = pooled(result, _samples).filter(axes.is_known("packets"), axes.is_known("rtt_ms"))
    if samples.is_empty():
        raise NoDataError("rtt_window: no samples of a TCP connection that has measured its round-trip time")
    if not axes.span(samples["packets"])[1]:
        raise NoDataError("rtt_window: no data in flight was seen; a capture near the receiver has none")
    samples = connections.named(result, samples)
    frame = _cells(samples)
    x, y = _axis(alt.X, "packets", "in flight (packets)", frame), _axis(alt.Y, "rtt_ms", "smoothed RTT (ms)", frame)
    tips = [*axes.point_tooltip(result), axes.tooltip(x), axes.tooltip(y), alt.Tooltip("samples:Q")]
    color = connections.color(result, frame, "circle")
    marks = alt.Chart(frame).mark_point(size=14, clip=True).encode(x=x, y=y, color=color, tooltip=tips)
    layers = pointer.clickable([marks.encode(opacity=pointer.dimmed(pointer.isolating(color), 0.65))], color)
    subtitle = parts.sentence(
        "On a straight line through the origin, more in flight only waits longer; its slope is the rate.",
        repetitions.pooled_note(result),
    )
    return multiples.framed(
        result, layers, ("Round-trip time against data in flight", subtitle), _description(result, samples)
    )


def _axis(channel: type[axes.Channel], name: str, title: str, frame: pl.DataFrame) -> axes.Channel:
    """A linear axis from zero: a line through the origin is to be seen as one."""
    return channel(f"{name}:Q", title=title, scale=alt.Scale(domain=[0, 1.03 * axes.span(frame[name])[1]], nice=False))


def _samples(run: RunRecords) -> pl.DataFrame:
    names = [entry["name"] for entry in traffic_named(run.scenario, *OVER_TCP)]
    known = run.flows.filter(traffic_of_flow().is_in(names) & (pl.col("srtt_ns") > 0))
    packets = pl.col("inflight_bytes") / int(run.meta["mss_bytes"])
    return known.select(packets.alias("packets"), "flow", (pl.col("srtt_ns") / MS).alias("rtt_ms"))


def _cells(samples: pl.DataFrame) -> pl.DataFrame:
    """The mean of the samples in each cell, with their number."""
    cells = CELLS
    by = [name for name in ("point", connections.FIELD) if name in samples.columns]
    while True:
        steps = {name: max(axes.span(samples[name])[1], 1e-9) / cells for name in ("packets", "rtt_ms")}
        keys = [(pl.col(name) / step).floor().alias(f"{name}_cell") for name, step in steps.items()]
        means = [pl.col(name).mean().round(3) for name in steps]
        frame = samples.group_by(*by, *keys, maintain_order=True).agg(*means, samples=pl.len())
        if frame.height <= parts.MOST_ROWS or cells <= 1:
            return frame.drop("packets_cell", "rtt_ms_cell")
        cells = cells * 3 // 4


def _description(result: ResultRecords, samples: pl.DataFrame) -> str:
    told = []
    for point in points(result):
        own = samples.filter(point=point.label)
        if own.height:
            packets, rtt_ms = own["packets"].to_numpy().max(), own["rtt_ms"].to_numpy()
            most = f"up to {packets:.0f} packets in flight"
            told.append(f"{point.label or 'the sender'}: {most}, from {rtt_ms.min():.1f} to {rtt_ms.max():.1f} ms")
    return f"Marks of round-trip time against data in flight. {'; '.join(told)}."
