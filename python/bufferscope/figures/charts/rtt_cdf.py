"""Figure: the distribution of round-trip times; lost probes make a curve end below 100 % by their share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, multiples, parts, pointer, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, points, pooled, probe_path
from bufferscope.metrics.rtt import rtts_ms
from bufferscope.stats.estimate import Samples

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure

STEPS = 400
NBSP = "\N{NO-BREAK SPACE}"


@figure(needs=("probes",))
def rtt_cdf(result: ResultRecords) -> Figure:
    """The share of all probes sent that were answered within a time, for all repetitions of a point together."""
    probe_path(result.runs[0])
    rtts = pooled(result, lambda run: pl.DataFrame({"rtt_ms": rtts_ms(run)}))
    steps = min(STEPS, parts.MOST_ROWS // len(points(result)))
    curves = [
        curve(point.label, rtts.filter(point=point.label)["rtt_ms"].to_numpy(), steps) for point in points(result)
    ]
    frame = pl.concat(curves)
    if frame.is_empty():
        raise NoDataError("rtt_cdf: no probe was answered")
    x = axes.fitted(alt.X, "rtt_ms", "round-trip time (ms)", frame["rtt_ms"])
    y = alt.Y("percent:Q", title="probes answered within (%)", scale=alt.Scale(domain=[0, 100]))
    color = axes.point_color(result)
    ends = frame.group_by("point", maintain_order=True).last().filter(pl.col("percent") < 100)
    isolated = pointer.isolating(color)
    line = alt.Chart(frame).mark_line(interpolate="step-after")
    line = line.encode(x=x, y=y, color=color, opacity=pointer.dimmed(isolated))
    layers: list[parts.Layer] = [
        *pointer.clickable([line], color),
        alt.Chart(ends).mark_point(size=60).encode(x=x, y=y, color=color, opacity=pointer.dimmed(isolated)),
        pointer.hover(frame, x, y, color, result),
    ]
    subtitle = parts.sentence(
        repetitions.pooled_note(result), _loss_note(ends), "Logarithmic scale." if axes.is_wide(frame["rtt_ms"]) else ""
    )
    return multiples.framed(
        result, layers, ("Distribution of the round-trip time", subtitle), _description(result, rtts)
    )


def curve(label: str, rtts: Samples, steps: int) -> pl.DataFrame:
    """The empirical distribution over all probes sent, at `steps` of the answered ones, including first and last."""
    answered = np.sort(rtts[np.isfinite(rtts)])
    evenly = np.linspace(0, len(answered) - 1, min(steps, len(answered)))
    ranks = np.unique(evenly.round().astype(np.int64))
    percent = (ranks + 1) / max(1, len(rtts)) * 100
    points = pl.DataFrame({"rtt_ms": answered[ranks].round(3), "percent": percent.round(3)})
    return points.with_columns(point=pl.lit(label))


def _loss_note(ends: pl.DataFrame) -> str:
    if ends.is_empty():
        return "No probe was lost."
    told = ", ".join(
        f"{row['point']} {100 - row['percent']:.2g} %".strip().replace(" ", NBSP) for row in ends.iter_rows(named=True)
    )
    return f"A curve that ends in a dot below 100 %: the remaining probes were lost ({told})."


def _description(result: ResultRecords, rtts: pl.DataFrame) -> str:
    told = []
    for point in points(result):
        own = rtts.filter(point=point.label)["rtt_ms"].to_numpy()
        answered = own[np.isfinite(own)]
        if len(answered):
            median, lost = np.median(answered), len(own) - len(answered)
            told.append(f"{point.label or 'all probes'}: median answer {median:.1f} ms, {lost} of {len(own)} lost")
    return f"Cumulative distribution of the probes' round-trip time. {'; '.join(told)}."
