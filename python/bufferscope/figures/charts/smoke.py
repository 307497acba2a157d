"""Figure: round-trip times as in Smokeping: the median of twenty pings, their spread as smoke, losses in colour.

Smokeping (T. Oetiker, https://oss.oetiker.ch/smokeping/) sends 20 pings every five minutes. Its "smoke" are bands
between the shortest and the longest, the second shortest and the second longest, and so on; a darker area had more
pings. Figures 2 and 6 of Gettys and Nichols, "Bufferbloat: dark buffers in the Internet" (2011), are such plots.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, pointer, style
from bufferscope.figures.declaring import figure
from bufferscope.figures.parts import Layer, sentence
from bufferscope.figures.source import NoDataError, PlottedPoint, ResultRecords, duration_s, points, probe_path
from bufferscope.figures.stacked import stacked
from bufferscope.metrics.rtt import echoes
from bufferscope.model.network import NANOSECONDS

if TYPE_CHECKING:
    from bufferscope.figures.chart import PanelFigure

PINGS = 20
"""Pings of an interval, as in Smokeping."""
MOST_INTERVALS = style.WIDTH // 2
"""With more intervals, each would be narrower than two pixels; they get more pings instead."""
MOST_PANELS = 12
HEIGHT = 150
BANDS = ((0, 100), (10, 90), (25, 75))
"""The percentiles between which smoke is drawn."""
LOSSES = {"none": 0.0, "up to 5 %": 0.05, "up to 20 %": 0.2, "more": 1.0}
"""The classes of lost pings, each with the greatest share; 5 % is one ping of twenty."""
HOURS, HOUR = "time (h)", 3600.0
LONG_S = 4 * HOUR
"""From this duration on, the axis counts hours."""
RTT = "round-trip time (ms)"


@figure(needs=("probes",), shape="panels")
def smoke(result: ResultRecords) -> PanelFigure:
    """One panel per point: the median of each interval's answered pings, and their spread.

    The median's colour shows how many of the interval's pings were lost; an interval without any answer is left empty.
    As in Smokeping, each panel has its own linear axis from zero. Of repetitions, the one with the least seed is drawn.
    """
    probe_path(result.runs[0])
    known = points(result)
    if len(known) > MOST_PANELS:
        raise NoDataError(f"smoke: {len(known)} points are too many panels to read; at most {MOST_PANELS}")
    longest = duration_s(result)
    unit, title = (HOUR, HOURS) if longest >= LONG_S else (1.0, axes.TIME)
    frames = [intervals(point).with_columns(pl.col("from", "to") / unit) for point in known]
    answered = [frame["p50"].drop_nulls() for frame in frames]
    if not any(map(len, answered)):
        raise NoDataError("smoke: no probe was answered")
    x = alt.X("from:Q", title=title, scale=alt.Scale(domain=[0, longest / unit], nice=False))
    panels = [_panel(frame, x) for frame in frames]
    titles = [_title(point, frame) for point, frame in zip(known, frames, strict=True)] if len(known) > 1 else [""]
    ticks = f"Ticks: the median of {_pings(frames)} pings, coloured by those that were lost; grey: their spread."
    scales = "Each panel has its own scale." if len(known) > 1 else ""
    heading = ("Round-trip times as smoke", sentence(ticks, scales))
    return stacked(panels, [HEIGHT] * len(known), titles, heading, _description(known, frames), _color())


def intervals(point: PlottedPoint) -> pl.DataFrame:
    """The pings of a point's first run in intervals of equal numbers.

    Columns: `from, to` (s), `pings, lost, loss` (its class) and the percentiles `p0` to `p100` of the answered ones in
    ms, null if there are none.
    """
    probes = echoes(point.first).sort("sent_ns")
    pings = max(PINGS, math.ceil(probes.height / MOST_INTERVALS))
    rtt_ms = pl.when(axes.is_known("rtt_ns")).then(pl.col("rtt_ns") / 1e6)
    percents = sorted({50, *(percent for band in BANDS for percent in band)})
    grouped = (
        probes.with_columns(interval=pl.int_range(pl.len()) // pings)
        .group_by("interval", maintain_order=True)
        .agg(
            (pl.col("sent_ns").min() / NANOSECONDS).round(3).alias("from"),
            pl.len().alias("pings"),
            pl.col("rtt_ns").null_count().alias("lost"),
            *(rtt_ms.quantile(percent / 100, "linear").round(3).alias(f"p{percent}") for percent in percents),
        )
        .with_columns(to=pl.col("from").shift(-1))
    )
    end = point.first.scenario["duration_ns"] / NANOSECONDS
    share = pl.col("lost") / pl.col("pings")
    classes = pl.lit("more")
    for name, most in reversed(LOSSES.items()):
        classes = pl.when(share <= most).then(pl.lit(name)).otherwise(classes)
    return grouped.with_columns(pl.col("to").fill_null(end), loss=classes).drop("interval")


def _title(point: PlottedPoint, frame: pl.DataFrame) -> str:
    """The point, and the median of the intervals' medians: the panels' scales differ."""
    medians = frame["p50"].drop_nulls().to_numpy()
    return f"{point.label} (median {np.median(medians):.4g} ms)" if len(medians) else f"{point.label} (no answer)"


def _panel(frame: pl.DataFrame, x: alt.X) -> list[Layer]:
    base = alt.Chart(frame.drop_nulls("p50"))
    y = alt.Y("p50:Q", title=RTT, scale=alt.Scale(zero=True))
    bands: list[Layer] = [
        base.mark_rect(style="smoke").encode(x=x, x2="to:Q", y=alt.Y(f"p{low}:Q", title=RTT), y2=f"p{high}:Q")
        for low, high in BANDS
    ]
    times = [alt.Tooltip(f"p{percent}:Q", title=f"p{percent} (ms)", format=",.4~g") for percent in (0, 50, 100)]
    tips = [axes.tooltip(x), *times, alt.Tooltip("lost:Q"), alt.Tooltip("pings:Q", title="of")]
    medians = base.mark_rule(strokeWidth=2.5, clip=True).encode(x=x, x2="to:Q", y=y, tooltip=tips)
    color = _color()
    medians = medians.encode(color=color, opacity=pointer.dimmed(pointer.isolating(color)))
    return [*bands, medians]


def _color() -> alt.Color:
    """The colour of a median, by the class of its losses."""
    classes = alt.Scale(domain=list(LOSSES), range=style.LOSS)
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1)
    return alt.Color("loss:O", title="pings lost", sort=None, scale=classes, legend=legend)


def _pings(frames: list[pl.DataFrame]) -> str:
    """The number of pings in an interval, of all points that have any."""
    numbers = sorted({int(pings) for frame in frames for pings in frame["pings"].head(1)})
    return " or ".join(map(str, numbers))


def _description(known: list[PlottedPoint], frames: list[pl.DataFrame]) -> str:
    told = []
    for point, frame in zip(known, frames, strict=True):
        medians = frame["p50"].drop_nulls().to_numpy()
        span = f"medians from {medians.min():.1f} to {medians.max():.1f} ms" if len(medians) else "none answered"
        told.append(f"{point.label or 'the probes'}: {span}, {frame['lost'].sum()} of {frame['pings'].sum()} lost")
    return f"Medians and spread of round-trip times over time. {'; '.join(told)}."
