"""Figure: congestion window and slow-start threshold of the TCP senders over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, connections, ends, multiples, parts, pointer, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, has_none, over_time, points
from bufferscope.metrics.flows import cwnd_packets
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import traffic_named, traffic_of_flow

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure

CWND, SSTHRESH = "cwnd", "ssthresh"


@figure(needs=("flows",), fits=lambda scenario: traffic_named(scenario, "tcp", "bittorrent"))
def cwnd(result: ResultRecords) -> Figure:
    """Congestion windows of the bulk connections, or else of the web traffic: in packets, one line per connection.

    The slow-start threshold is dashed. It is unlimited at first, and drawn only up to twice the largest window.
    """
    frame = over_time(result, _samples)
    if has_none(frame, "cwnd_packets"):
        raise NoDataError("cwnd: no sample of a TCP connection has a congestion window")
    x, y = axes.time_axis(result), alt.Y("packets:Q", title="window (packets)")
    layers = _medians(result, frame, x, y) if repetitions.are_many(result) else _connections(result, frame, x, y)
    together = "All connections of a point together." if repetitions.are_many(result) and _several(frame) else ""
    subtitle = parts.sentence(repetitions.note(result), together)
    chart = multiples.framed(result, layers, ("Congestion window", subtitle), _description(result, frame))
    return pointer.over_time(chart, result)


def _connections(result: ResultRecords, frame: pl.DataFrame, x: alt.X, y: alt.Y) -> list[parts.Layer]:
    """One line per connection, with its threshold."""
    windows = connections.named(result, _windows(frame))
    lines = repetitions.drawn(result, windows, "packets", ["point", "flow", "what"])
    dashes = alt.Scale(domain=[CWND, SSTHRESH], range=[[1, 0], [2, 4]])
    dash = alt.StrokeDash("what:N", title=None, scale=dashes, legend=alt.Legend(symbolOpacity=1))
    color = connections.color(result, windows)
    layers = repetitions.layers(lines, x, y, color, ["flow:N"], dash, opacity=0.6 if _several(frame) else 1)
    if not _several(frame):
        layers += ends.layers(result, lines.strong.filter(what=CWND), y, color, ends.top(lines, "packets"))
    tips = [*connections.tips(windows), alt.Tooltip("what:N", title="is")]
    return [*layers, pointer.hover(lines.strong, x, y, color, result, tips)]


def _medians(result: ResultRecords, frame: pl.DataFrame, x: alt.X, y: alt.Y) -> list[parts.Layer]:
    """One line per point, for all connections of all repetitions; a median of thresholds would have no meaning."""
    lines = repetitions.drawn(result, _windows(frame).filter(what=CWND), "packets")
    color = axes.point_color(result)
    layers = repetitions.layers(lines, x, y, color)
    layers += ends.layers(result, lines.strong, y, color, ends.top(lines, "packets"))
    return [*layers, pointer.hover(lines.strong, x, y, color, result, repetitions.tooltips(lines))]


def _windows(frame: pl.DataFrame) -> pl.DataFrame:
    """Windows and thresholds below one another: `point, repetition, flow, time_s, packets, what`."""
    common = ["point", "repetition", "flow", "time_s"]
    series = [
        frame.select(*common, pl.col(column).round(2).alias("packets"), pl.lit(what).alias("what"))
        for column, what in (("cwnd_packets", CWND), ("ssthresh_packets", SSTHRESH))
    ]
    highest = 2 * axes.span(frame["cwnd_packets"])[1]
    return pl.concat([series[0], series[1].filter(pl.col("packets") <= highest)])


def _several(frame: pl.DataFrame) -> bool:
    """Whether a run has several connections."""
    return frame.n_unique(["point", "repetition", "flow"]) > frame.n_unique(["point", "repetition"])


def _samples(run: RunRecords) -> pl.DataFrame:
    bulk = [entry["name"] for entry in traffic_named(run.scenario, "tcp")]
    shown = bulk or [entry["name"] for entry in traffic_named(run.scenario, "web")]
    threshold = (pl.col("ssthresh_bytes") / int(run.meta["mss_bytes"])).alias("ssthresh_packets")
    known = run.flows.filter(traffic_of_flow().is_in(shown)).drop_nulls("cwnd_bytes")
    return known.select("t_ns", "flow", cwnd_packets(run), threshold)


def _description(result: ResultRecords, frame: pl.DataFrame) -> str:
    told = [
        f"{point.label or 'the sender'}: {values.mean():.0f} packets on average, at most {values.max():.0f}"
        for point in points(result)
        if len(values := frame.filter(point=point.label)["cwnd_packets"].to_numpy())
    ]
    return f"Line chart of the congestion window over time. {'; '.join(told)}."
