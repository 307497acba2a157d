"""Figure: the round-trip time predicted for a full queue, compared with the measured one.

The equation is from Park's "Bufferbloat" assignment report, for a queue of Q packets of S bits before a link of C
bit/s, which is reached over links of C1, C2, ... bit/s:

    RTT = Q S / C + propagation delay + 2 S / C1 + 2 S / C2

It assumes that all packets, including the probe, have full size, and that the queue is always full. So it predicts the
longest round-trip time rather than the mean. S is the size of a full packet with the link-layer header that the
bottleneck counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, pointer
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, PlottedPoint, ResultRecords, points, probe_path
from bufferscope.metrics import all_of
from bufferscope.metrics.capacity import capacities
from bufferscope.metrics.records import was_changed
from bufferscope.model.network import NANOSECONDS
from bufferscope.stats.estimate import estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

MTU_BYTES = 1500
PREDICTED = "predicted"
MEASURED = {"mean": "rtt.mean_ms", "p95": "rtt.p95_ms", "max": "rtt.max_ms"}
SHAPES = {PREDICTED: "M0,-1V1", "mean": "circle", "p95": "diamond", "max": "triangle-up"}
NOTE = "Prediction for a queue that is always full: RTT = Q·S/C + propagation + 2·S/C1 + 2·S/C2."


@figure(needs=("probes", "capacity"))
def rtt_equation(result: ResultRecords) -> LayerFigure:
    """One row per point: the equation's prediction as a vertical bar; the measured mean, p95 and maximum as marks.

    With repetitions, a mark is the mean of their values. A censored percentile has no mark; the subtitle names it.
    """
    rows = [row for point in points(result) for row in _rows(point)]
    frame = pl.DataFrame(rows, schema={"point": pl.String, "what": pl.String, "rtt_ms": pl.Float64}, orient="row")
    drawn = frame.filter(pl.col("rtt_ms").is_finite())
    x = axes.fitted(alt.X, "rtt_ms", "round-trip time (ms)", drawn["rtt_ms"])
    shape = alt.Shape(
        "what:N", title=None, sort=None, scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    )
    tooltip = [*axes.point_tooltip(result), alt.Tooltip("what:N"), axes.tooltip(x)]
    measured = alt.Chart(drawn.filter(pl.col("what") != PREDICTED)).mark_point(size=90)
    predicted = alt.Chart(drawn.filter(what=PREDICTED)).mark_point(
        style="predicted", size=700, strokeWidth=2.5, filled=False
    )
    y, color = axes.row_axis(result), axes.point_color(result, legend=False)
    opacity = pointer.dimmed(pointer.isolating(shape))
    marks = [
        predicted.encode(x=x, y=y, shape=shape, tooltip=tooltip, opacity=opacity),
        measured.encode(x=x, y=y, shape=shape, color=color, tooltip=tooltip, opacity=opacity),
    ]
    layers = pointer.clickable(marks, shape)
    hidden = [label or "the probes" for label in frame.filter(pl.col("rtt_ms").is_infinite())["point"]]
    note = f"The p95 of {', '.join(hidden)} falls among the lost probes." if hidden else ""
    title = "Predicted and measured round-trip time"
    return parts.framed(
        layers, title, parts.sentence(NOTE, note), _description(frame), height=parts.rows_height(result)
    )


def predicted_rtt_ms(point: PlottedPoint) -> float:
    """The equation's round-trip time for a point's network; Q is that of the slowest port on the way there."""
    there, back = probe_path(point.first)
    capacity = capacities(point.first)
    rated = [port for port in there if port.name in capacity]
    if not rated:
        raise NoDataError("rtt_equation: no link on the probe's path has a rate")
    slowest = min(rated, key=lambda port: capacity[port.name].at(0))
    if slowest.limit_packets is None:
        raise NoDataError(f"rtt_equation: the queue of {slowest.name} is not limited in packets")
    if not all(capacity[port.name].is_constant and capacity[port.name].at(0) for port in rated):
        raise NoDataError("rtt_equation: the rate changes over time, but the equation assumes a constant rate")
    if was_changed(point.first):
        raise NoDataError("rtt_equation: the run was changed on the way, but the equation assumes a constant network")
    packet_bits = slowest.link_layer.frame_bytes(MTU_BYTES) * 8
    queueing = slowest.limit_packets * packet_bits / capacity[slowest.name].at(0)
    propagation = sum(port.delay_ns for port in [*there, *back]) / NANOSECONDS
    transmission = sum(2 * packet_bits / capacity[port.name].at(0) for port in rated)
    return (queueing + propagation + transmission) * 1e3


def _rows(point: PlottedPoint) -> list[tuple[str, str, float]]:
    repetitions = [all_of(run) for run in point.runs]
    rows = [(point.label, PREDICTED, predicted_rtt_ms(point))]
    for what, name in MEASURED.items():
        values = [metrics[name] for metrics in repetitions if name in metrics]
        if values:
            rows.append((point.label, what, estimate(values).mean))
    return [(label, what, value if math.isinf(value) else round(value, 3)) for label, what, value in rows]


def _description(frame: pl.DataFrame) -> str:
    told = []
    for (label,), rows in frame.group_by("point", maintain_order=True):
        values = ", ".join(f"{row['what']} {row['rtt_ms']:.1f} ms" for row in rows.iter_rows(named=True))
        told.append(f"{label or 'the run'}: {values.replace('inf ms', 'censored')}")
    return f"Predicted and measured round-trip times. {'; '.join(told)}."
