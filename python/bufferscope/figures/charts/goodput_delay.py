"""Figure: goodput against delay, one mark per point: the benefit of more packets in flight, and their cost.

With a swept window, this is figure 1 of Gettys and Nichols, "Bufferbloat: dark buffers in the Internet" (2011).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, labelled, parts, style
from bufferscope.figures.declaring import figure
from bufferscope.figures.labelled import Mark, Plane, PlotAxis, Surroundings
from bufferscope.figures.labels import Position
from bufferscope.figures.matrix import interval, mean_metric
from bufferscope.figures.source import NoDataError, ResultRecords, points, probe_path, sweep_title, swept_alone
from bufferscope.stats.estimate import Estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import Layer, LayerFigure

VALUES = ("rtt_ms", "mbit", "rtt_ms_low", "rtt_ms_high", "mbit_low", "mbit_high")
INTERVALS = {
    "rtt_ms_low": "95 % interval from (ms)",
    "rtt_ms_high": "to (ms)",
    "mbit_low": "95 % interval from (Mbit/s)",
    "mbit_high": "to (Mbit/s)",
}
MOST_NAMES, LEAST_WIDTH = 24, 270
"""The most names beside marks, and the width in pixels of the narrowest plot, in which they are apart."""
STEP = 3
"""Pixels between the positions on the line that labels keep off."""
RTT, GOODPUT = "median round-trip time (ms)", "goodput (Mbit/s)"


@figure(needs=("flows", "probes"))
def goodput_delay(result: ResultRecords) -> LayerFigure:
    """One mark per point, with the point's name, at its median round-trip time and the goodput of all its traffic.

    Both are means of the repetitions' values. A point whose median falls among lost probes has no mark. If one key is
    swept and nothing else varies, a line joins the points in the order of the sweep.
    """
    probe_path(result.runs[0])
    rtt_ms, mbit = mean_metric("rtt.p50_ms"), mean_metric("goodput.total_mbit")
    rows = [(point.label, rtt_ms(point), mbit(point)) for point in points(result)]
    frame = pl.DataFrame(
        [_row(index, label, rtt, rate) for index, (label, rtt, rate) in enumerate(rows) if rtt and rate],
        schema={"index": pl.Int64, "point": pl.String} | dict.fromkeys(VALUES, pl.Float64),
    )
    if frame.is_empty():
        raise NoDataError("goodput_delay: no point has both goodput and a median round-trip time")
    x = axes.fitted(alt.X, "rtt_ms", RTT, _drawn(frame, "rtt_ms"), room=0.1)
    y = axes.fitted(alt.Y, "mbit", GOODPUT, _drawn(frame, "mbit"), room=0.1)
    base = alt.Chart(frame).encode(x=x, y=y)
    color = axes.point_color(result, legend=False)
    known = frame.drop_nulls(["rtt_ms_low", "mbit_low"])
    tips = [*axes.point_tooltip(result), axes.tooltip(x), axes.tooltip(y)]
    if not known.is_empty():
        tips += [alt.Tooltip(f"{name}:Q", title=title, format=",.4~g") for name, title in INTERVALS.items()]
    spread = alt.Chart(known).mark_rule(strokeWidth=1.75, clip=True)
    joined = swept_alone(result) and all(point.label[:1].isdigit() for point in points(result))
    layers = [
        *([base.mark_line(style="guide").encode(order="index:Q")] if joined else []),
        base.mark_point(size=70).encode(color=color, tooltip=tips),
        spread.encode(x=alt.X("rtt_ms_low:Q", title=RTT), x2="rtt_ms_high:Q", y=y, color=color),
        spread.encode(y=alt.Y("mbit_low:Q", title=GOODPUT), y2="mbit_high:Q", x=x, color=color),
        *_names(frame, x, y, joined),
    ]
    named = _named_note(result, frame)
    lines = "" if known.is_empty() else "Lines: 95 % confidence intervals of the means over repetitions."
    return parts.framed(layers, "Goodput against delay", parts.sentence(named, lines), _description(frame))


def _names(frame: pl.DataFrame, x: alt.X, y: alt.Y, joined: bool) -> list[Layer]:
    """The names of the marks, off the line that joins them.

    Of more than can be read, these are the names of the marks that no other one beats in both values.
    """
    marks = [Mark(row["rtt_ms"], row["mbit"], row["point"]) for row in frame.iter_rows(named=True) if row["point"]]
    if len(marks) > MOST_NAMES:
        marks = [mark for mark in marks if not any(_beats(other, mark) for other in marks)][:MOST_NAMES]
    plane = Plane(PlotAxis.of(x, LEAST_WIDTH), PlotAxis.of(y, style.HEIGHT))
    inside = [mark for mark in marks if mark.x > 0 and mark.y >= 0]
    corners = frame.filter((pl.col("rtt_ms") > 0) & (pl.col("mbit") >= 0)).select("rtt_ms", "mbit").rows()
    line = _along([plane.position(*corner) for corner in corners]) if joined else []
    around = Surroundings(avoided=line)
    return labelled.layers(inside, plane, (x, y, alt.Undefined), around=around) if inside else []


def _along(corners: Sequence[Position]) -> list[Position]:
    """Positions on the line through the corners, some pixels apart."""
    found = []
    for (x1, y1), (x2, y2) in pairwise(corners):
        steps = max(1, int(math.hypot(x2 - x1, y2 - y1) / STEP))
        found += [(x1 + (x2 - x1) * n / steps, y1 + (y2 - y1) * n / steps) for n in range(steps + 1)]
    return found


def _beats(one: Mark, other: Mark) -> bool:
    """Whether one has no less goodput and no more delay, and is better in one of them."""
    return one.x <= other.x and one.y >= other.y and (one.x, one.y) != (other.x, other.y)


def _named_note(result: ResultRecords, frame: pl.DataFrame) -> str:
    if frame.height < 2:
        return ""
    if frame.height > MOST_NAMES:
        return "Named: the points that no other point beats in both goodput and delay."
    return f"Each mark is labelled with its {sweep_title(result)}."


def _row(index: int, label: str, rtt: Estimate, rate: Estimate) -> dict[str, object]:
    values = {"rtt_ms": round(rtt.mean, 3), "mbit": round(rate.mean, 4)}
    intervals = {
        f"{name}_{end}": value
        for name, known in (("rtt_ms", rtt), ("mbit", rate))
        for end, value in interval(known).items()
    }
    return {"index": index, "point": label} | values | intervals


def _drawn(frame: pl.DataFrame, name: str) -> pl.Series:
    """All positive positions on an axis: the means, and the ends of their intervals."""
    everything = pl.concat([frame[name], frame[f"{name}_low"], frame[f"{name}_high"]])
    return everything.filter(everything > 0)


def _description(frame: pl.DataFrame) -> str:
    told = "; ".join(
        f"{row['point'] or 'the run'}: {row['mbit']:.2f} Mbit/s at {row['rtt_ms']:.1f} ms"
        for row in frame.iter_rows(named=True)
    )
    return f"Marks at goodput and median round-trip time. {told}."
