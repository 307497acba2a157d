"""Figure: goodput over time, with the rate of the bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, bounds, connections, ends, multiples, parts, pointer, repetitions
from bufferscope.figures.bounds import Bound
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, duration_s, over_time, points
from bufferscope.metrics.goodput import MBIT, deliveries
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import CARRYING, NANOSECONDS, traffic_named, traffic_of_flow

if TYPE_CHECKING:
    from altair.typing import Optional

    from bufferscope.figures.chart import Figure

BINS = 120
BURST = "Where goodput exceeds it, a retransmission released data that had arrived after the loss."


@figure(needs=("flows", "queues", "capacity"), fits=lambda scenario: traffic_named(scenario, *CARRYING))
def goodput(result: ResultRecords) -> Figure:
    """Payload acknowledged (for udp: arrived) in each 1/120 of the run, in Mbit/s.

    There is one line per point, or, for a single point, one per traffic entry or captured connection. The dashed line
    is the rate of the bottleneck over time, which includes link-layer headers. A point's line is then the sum of the
    traffic that crosses the bottleneck, in the same direction as the rate. If some point has no such traffic, all
    traffic is summed, and there is no dashed line. What was only observed, as by a capture, has none either.
    """
    known = connections.names(result)
    by_traffic = over_time(result, lambda run: binned(run, known))
    if by_traffic.is_empty():
        raise NoDataError("goodput: no samples of a flow of tcp, web or udp")
    compares_points = len(points(result)) > 1
    bound = bounds.bound(result)
    frame = _summed(by_traffic, bound) if compares_points else by_traffic
    lines = repetitions.drawn(result, frame, "mbit", ["point"] if compares_points else ["point", "traffic"])
    layers = _layers(result, lines, bound, compares_points)
    subtitle = parts.sentence(
        _together_note(by_traffic, bound) if compares_points else "",
        f"Means over {duration_s(result) / BINS:.2g} s.",
        _dashed_note(by_traffic, bound, compares_points) if bound else "",
        BURST if bound and bound.is_exceeded(frame if compares_points else bound.of(frame)) else "",
        repetitions.note(result),
    )
    heading, description = ("Goodput", subtitle), _description(frame)
    names = by_traffic["traffic"].unique(maintain_order=True).to_list()
    if not compares_points and len(names) > axes.COLOURS:
        return multiples.panels(layers, names, "traffic", heading, description)
    return pointer.over_time(multiples.framed(result, layers, heading, description), result)


def _layers(
    result: ResultRecords, lines: repetitions.DrawnLines, bound: Bound | None, compares_points: bool
) -> list[parts.Layer]:
    x, y = axes.time_axis(result), alt.Y("mbit:Q", title="goodput (Mbit/s)")
    color = axes.point_color(result) if compares_points else _traffic_color(result, lines.strong)
    title = connections.FIELD if connections.names(result) else "traffic"
    tips = [*([] if compares_points else [alt.Tooltip("traffic:N", title=title)]), *repetitions.tooltips(lines)]
    top = max(ends.top(lines, "mbit"), bound.highest_mbit if bound else 0)
    rate = [bounds.layer(bound, result, x, y)] if bound else []
    return [
        *(rate if bound and bound.is_common else []),
        *repetitions.layers(lines, x, y, color),
        *(rate if bound and not bound.is_common else []),
        *ends.layers(result, lines.strong, y, color, top, "point" if compares_points else "traffic"),
        pointer.hover(lines.strong, x, y, color, result, tips),
    ]


def _together_note(by_traffic: pl.DataFrame, bound: Bound | None) -> str:
    """What a point's line is the sum of; empty if there is a single traffic entry."""
    names = by_traffic["traffic"].unique(maintain_order=True).to_list()
    if len(names) == 1:
        return ""
    others = bound.others(by_traffic) if bound else []
    if bound and others:
        return f"Each line: the traffic through {bound.port} together, without {', '.join(others)}."
    return "All traffic together."


def _dashed_note(by_traffic: pl.DataFrame, bound: Bound, compares_points: bool) -> str:
    others = bound.others(by_traffic)
    if compares_points or not others:
        return f"Dashed: rate of {bound.port}."
    return f"Dashed: rate of {bound.port}; {', '.join(others)} {'is' if len(others) == 1 else 'are'} not bound by it."


def binned(run: RunRecords, known: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Goodput by traffic entry in equal bins of the run: `t_ns` (middle of the bin)`, traffic, mbit`.

    If the names of connections are `known`, `traffic` is that name.
    """
    series = connections.name(known).alias("traffic") if known else traffic_of_flow()
    duration_ns = run.scenario["duration_ns"]
    edges = np.linspace(0, duration_ns, BINS + 1).round().astype(np.int64)
    middles = (edges[:-1] + edges[1:]) // 2
    if not duration_ns:
        return _nothing()
    scale = 8 * BINS / (duration_ns / NANOSECONDS) / MBIT
    per_flow = [
        pl.DataFrame({"t_ns": middles, "mbit": np.diff(_at(edges, rows)) * scale}).with_columns(flow=pl.lit(flow))
        for (flow,), rows in deliveries(run).group_by("flow", maintain_order=True)
    ]
    return (
        pl.concat([_nothing().rename({"traffic": "flow"}), *per_flow])
        .group_by("t_ns", series, maintain_order=True)
        .agg(pl.col("mbit").sum().round(4))
        .sort("traffic", "t_ns")
    )


def _nothing() -> pl.DataFrame:
    return pl.DataFrame(schema={"t_ns": pl.Int64, "mbit": pl.Float64, "traffic": pl.String})


def _at(edges: np.ndarray, rows: pl.DataFrame) -> np.ndarray:
    """The bytes that a connection had delivered by each edge."""
    joined = pl.DataFrame({"t_ns": edges}).join_asof(rows.select("t_ns", "delivered_bytes"), on="t_ns")
    return joined["delivered_bytes"].fill_null(0).to_numpy()


def _summed(by_traffic: pl.DataFrame, bound: Bound | None) -> pl.DataFrame:
    frame = bound.of(by_traffic) if bound else by_traffic
    return frame.group_by("point", "repetition", "time_s", maintain_order=True).agg(pl.col("mbit").sum().round(4))


def _traffic_color(result: ResultRecords, frame: pl.DataFrame) -> Optional[alt.Color]:
    if connections.names(result):
        return connections.by_connection(result, frame["traffic"])
    names = frame["traffic"].unique(maintain_order=True).to_list()
    if len(names) > axes.COLOURS:
        return alt.Undefined
    legend = alt.Legend(symbolType="stroke") if len(names) > 1 else None
    return alt.Color("traffic:N", title="traffic", sort=None, scale=alt.Scale(domain=names), legend=legend)


def _description(frame: pl.DataFrame) -> str:
    key = "traffic" if "traffic" in frame.columns else "point"
    means = frame.group_by(key, maintain_order=True).agg(pl.col("mbit").mean())
    told = "; ".join(f"{row[key]}: {row['mbit']:.2f} Mbit/s on average" for row in means.iter_rows(named=True))
    return f"Line chart of goodput over time. {told}."
