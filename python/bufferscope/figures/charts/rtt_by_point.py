"""Figure: the round-trip times of each point: median, middle half, 5th to 95th percentile, and longest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, points, pooled, probe_path
from bufferscope.metrics.rtt import rtts_ms
from bufferscope.stats.estimate import Samples, percentile

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

QUANTILES = {"p5": 5, "p25": 25, "p50": 50, "p75": 75, "p95": 95}
NONE = "none"
"""Stands in place of the names of censored percentiles if there are none."""
TITLE = "round-trip time (ms)"
NOTE = "Box: middle half, with the median; line: 5th to 95th percentile; ring: longest answered."


@figure(needs=("probes",))
def rtt_by_point(result: ResultRecords) -> LayerFigure:
    """One row per point: a box p25..p75 with the median, a line p5..p95, and a ring at the longest answered time.

    Percentiles are over all probes sent, of all repetitions together. A percentile that falls among the lost probes is
    drawn at the longest answered time, and an arrow shows that it lies beyond.
    """
    probe_path(result.runs[0])
    rtts = pooled(result, lambda run: pl.DataFrame({"rtt_ms": rtts_ms(run)}))
    rows = [_row(point.label, rtts.filter(point=point.label)["rtt_ms"].to_numpy()) for point in points(result)]
    frame = pl.DataFrame([row for row in rows if row])
    if frame.is_empty():
        raise NoDataError("rtt_by_point: no probe was answered")
    losses = parts.counts_note({row["point"]: row["lost"] for row in frame.iter_rows(named=True)})
    wide = axes.is_wide(pl.concat([frame["p5"], frame["max"]]))
    subtitle = parts.sentence(
        NOTE,
        repetitions.pooled_note(result),
        f"Lost probes: {losses}." if losses else "",
        "Logarithmic scale." if wide else "",
    )
    return parts.framed(
        _layers(result, frame), "Round-trip time by point", subtitle, _description(frame), parts.rows_height(result)
    )


def _layers(result: ResultRecords, frame: pl.DataFrame) -> list[parts.Layer]:
    censored = frame["censored"].ne(NONE).any()
    base = alt.Chart(frame).encode(y=axes.row_axis(result), tooltip=_tooltips(result, censored))
    color = axes.point_color(result, legend=False)
    x = axes.fitted(alt.X, "p5", TITLE, pl.concat([frame["p5"], frame["max"]]), room=0.03)
    longest = alt.X("max:Q", title=TITLE)
    hidden = alt.Chart(frame.filter(pl.col("censored") != NONE))
    return [
        base.mark_rule(strokeWidth=2).encode(x=x, x2="p95", color=color),
        base.mark_bar(height=18).encode(x=alt.X("p25:Q", title=TITLE), x2="p75", color=color),
        base.mark_tick(thickness=2.5, height=18, style="median").encode(x=alt.X("p50:Q", title=TITLE)),
        base.mark_point(filled=False, strokeWidth=1.75, size=45).encode(x=longest, color=color),
        hidden.mark_text(text="▶", dx=12, fontSize=11).encode(x=longest, y=axes.row_axis(result), color=color),
    ]


def _row(label: str, rtts: Samples) -> dict[str, Any] | None:
    """The point's quantiles; a censored one is replaced by the longest answered time."""
    answered = rtts[np.isfinite(rtts)]
    if not len(answered):
        return None
    longest = round(float(answered.max()), 3)
    exact = {name: percentile(rtts, percent) for name, percent in QUANTILES.items()}
    shown = {name: min(round(value, 3), longest) for name, value in exact.items()}
    censored = ", ".join(name for name, value in exact.items() if math.isinf(value)) or NONE
    return {"point": label, **shown, "max": longest, "lost": len(rtts) - len(answered), "censored": censored}


def _tooltips(result: ResultRecords, censored: bool) -> list[alt.Tooltip]:
    times = [alt.Tooltip(f"{name}:Q", title=f"{name} (ms)", format=",.4~g") for name in (*QUANTILES, "max")]
    hidden = [alt.Tooltip("censored:N", title="beyond, among the lost")] if censored else []
    return [*axes.point_tooltip(result), *times, alt.Tooltip("lost:Q"), *hidden]


def _description(frame: pl.DataFrame) -> str:
    told = "; ".join(
        f"{row['point'] or 'all probes'}: median {row['p50']:.1f} ms, longest answered {row['max']:.1f} ms"
        for row in frame.iter_rows(named=True)
    )
    return f"Intervals of the round-trip time. {told}."
