"""Figure: goodput over time, with the rate of the bottleneck."""

import altair as alt
import numpy as np
import polars as pl

from bufferscope.figures import axes, ends, parts, pointer, repetitions
from bufferscope.figures.source import NoDataError, ResultRecords, bottleneck, duration_s, over_time, points
from bufferscope.metrics.capacity import Capacity, capacities
from bufferscope.metrics.goodput import MBIT, deliveries
from bufferscope.metrics.network import NANOSECONDS, traffic_of_flow
from bufferscope.metrics.records import RunRecords
from bufferscope.store.metadata import is_observed

BINS = 120


def goodput(result: ResultRecords) -> alt.LayerChart:
    """Payload acknowledged (for udp: arrived) in each 1/120 of the run, in Mbit/s.

    There is one line per point, or, for a single point, one per traffic entry.

    The dashed line is the rate of the bottleneck over time, which includes link-layer headers. What was only observed,
    as by a capture, has none.
    """
    by_traffic = over_time(result, binned)
    if by_traffic.is_empty():
        raise NoDataError("goodput: no samples of a flow of tcp, web or udp")
    compares_points = len(points(result)) > 1
    frame = _summed(by_traffic) if compares_points else by_traffic
    lines = repetitions.drawn(result, frame, "mbit", ["point"] if compares_points else ["point", "traffic"])
    port, capacity = _bottleneck(result)
    x, y = axes.time_axis(result), alt.Y("mbit:Q", title="goodput (Mbit/s)")
    color = axes.point_color(result) if compares_points else _traffic_color(frame)
    tips = [*([] if compares_points else [alt.Tooltip("traffic:N")]), *repetitions.tooltips(lines)]
    top = ends.top(lines, "mbit")
    if capacity:
        top = max(top, float(capacity.steps["rate_bps"].to_numpy().max()) / MBIT)
    layers = [
        *([_capacity(capacity, result, x, y)] if capacity else []),
        *repetitions.layers(lines, x, y, color),
        *ends.layers(result, lines.strong, y, color, top, "point" if compares_points else "traffic"),
        pointer.hover(lines.strong, x, y, color, result, tips),
    ]
    together = "All traffic together." if compares_points and by_traffic["traffic"].n_unique() > 1 else ""
    means = f"Means over {duration_s(result) / BINS:.2g} s."
    dashed = f"Dashed: rate of {port}." if capacity else ""
    burst = (
        "Where goodput exceeds it, a retransmission released data that had arrived after the loss."
        if capacity and _exceeds(frame, capacity)
        else ""
    )
    subtitle = parts.sentence(together, means, dashed, burst, repetitions.note(result))
    return pointer.over_time(parts.framed(layers, "Goodput", subtitle, _description(frame)), result)


def _bottleneck(result: ResultRecords) -> tuple[str, Capacity | None]:
    """The bottleneck with its rate; no rate is known of runs that were only observed."""
    if all(is_observed(run.meta) for run in result.runs):
        return "", None
    port = bottleneck(result).name
    return port, next(known[port] for known in map(capacities, result.runs) if port in known)


def binned(run: RunRecords) -> pl.DataFrame:
    """Goodput by traffic entry in equal bins of the run: `t_ns` (middle of the bin)`, traffic, mbit`."""
    duration_ns = run.scenario["duration_ns"]
    edges = np.linspace(0, duration_ns, BINS + 1).round().astype(np.int64)
    middles = (edges[:-1] + edges[1:]) // 2
    scale = 8 * BINS / (duration_ns / NANOSECONDS) / MBIT
    per_flow = [
        pl.DataFrame({"t_ns": middles, "mbit": np.diff(_at(edges, rows)) * scale}).with_columns(flow=pl.lit(flow))
        for (flow,), rows in deliveries(run).group_by("flow", maintain_order=True)
    ]
    empty = pl.DataFrame(schema={"t_ns": pl.Int64, "mbit": pl.Float64, "flow": pl.String})
    return (
        pl.concat([empty, *per_flow])
        .group_by("t_ns", traffic_of_flow(), maintain_order=True)
        .agg(pl.col("mbit").sum().round(4))
        .sort("traffic", "t_ns")
    )


def _at(edges: np.ndarray, rows: pl.DataFrame) -> np.ndarray:
    """The bytes that a connection had delivered by each edge."""
    joined = pl.DataFrame({"t_ns": edges}).join_asof(rows.select("t_ns", "delivered_bytes"), on="t_ns")
    return joined["delivered_bytes"].fill_null(0).to_numpy()


def _summed(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.group_by("point", "repetition", "time_s", maintain_order=True).agg(pl.col("mbit").sum().round(4))


def _exceeds(frame: pl.DataFrame, capacity: Capacity) -> bool:
    """Whether the goodput exceeds the capacity in any bin."""
    highest = frame.group_by("time_s").agg(pl.col("mbit").max()).rows()
    return any(mbit * MBIT > capacity.at(round(time_s * NANOSECONDS)) for time_s, mbit in highest)


def _traffic_color(frame: pl.DataFrame) -> alt.Color:
    names = frame["traffic"].unique(maintain_order=True).to_list()
    legend = alt.Legend(symbolType="stroke") if len(names) > 1 else None
    return alt.Color("traffic:N", title="traffic", sort=None, scale=alt.Scale(domain=names), legend=legend)


def _capacity(capacity: Capacity, result: ResultRecords, x: alt.X, y: alt.Y) -> alt.Chart:
    """The capacity as a step line, to the end of the time axis."""
    recorded = capacity.steps.select(time_s=pl.col("t_ns") / NANOSECONDS, mbit=pl.col("rate_bps") / MBIT)
    steps = pl.concat([recorded, recorded.tail(1).with_columns(time_s=pl.lit(duration_s(result)))])
    line: alt.Chart = alt.Chart(steps).mark_line(style="capacity", interpolate="step-after", clip=True).encode(x=x, y=y)
    return line


def _description(frame: pl.DataFrame) -> str:
    key = "traffic" if "traffic" in frame.columns else "point"
    means = frame.group_by(key, maintain_order=True).agg(pl.col("mbit").mean())
    told = "; ".join(f"{row[key]}: {row['mbit']:.2f} Mbit/s on average" for row in means.iter_rows(named=True))
    return f"Line chart of goodput over time. {told}."
