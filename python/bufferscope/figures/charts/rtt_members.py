"""Figure: how many members of a population have how much delay, by each member's p95 round-trip time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, multiples, parts, pointer
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, points, probe_path
from bufferscope.metrics import of_each
from bufferscope.metrics.records import RunRecords
from bufferscope.stats.estimate import Samples

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure

METRIC = "rtt.p95_ms"
STEPS = 400


@figure(needs=("probes",), only_of="a population")
def rtt_members(result: ResultRecords) -> Figure:
    """For each point, the share of the runs whose 95th percentile of the round-trip time is at most so long.

    A run whose percentile falls among lost probes counts as longer than all others.
    """
    probe_path(result.runs[0])
    found = {point.label: _values(point.runs) for point in points(result)}
    steps = min(STEPS, parts.MOST_ROWS // len(found))
    frame = pl.concat([_curve(label, values, steps) for label, values in found.items()])
    if frame.is_empty():
        raise NoDataError("rtt_members: no run has a 95th percentile of the round-trip time")
    x = axes.fitted(alt.X, "rtt_ms", "95th percentile of a member's round-trip time (ms)", frame["rtt_ms"])
    y = alt.Y("percent:Q", title="members (%)", scale=alt.Scale(domain=[0, 100]))
    color = axes.point_color(result)
    isolated = pointer.isolating(color)
    line = alt.Chart(frame).mark_line(interpolate="step-after")
    line = line.encode(x=x, y=y, color=color, opacity=pointer.dimmed(isolated))
    layers: list[parts.Layer] = [
        *pointer.clickable([line], color),
        pointer.hover(frame, x, y, color, result),
    ]
    subtitle = "Logarithmic scale." if axes.is_wide(frame["rtt_ms"]) else ""
    return multiples.framed(result, layers, ("The delay of the population", subtitle), _description(found))


def _values(runs: Sequence[RunRecords]) -> Samples:
    """The metric of each run that has it."""
    found = [metrics.get(METRIC) for metrics in of_each(runs)]
    return np.array([value for value in found if value is not None])


def _curve(label: str, values: Samples, steps: int) -> pl.DataFrame:
    known = np.sort(values[np.isfinite(values)])
    ranks = np.unique(np.linspace(0, len(known) - 1, min(steps, len(known))).round().astype(np.int64))
    percent = (ranks + 1) / max(1, len(values)) * 100
    told = pl.DataFrame({"rtt_ms": known[ranks].round(3), "percent": percent.round(3)})
    return told.with_columns(point=pl.lit(label))


def _description(found: Mapping[str, Samples]) -> str:
    told = [f"{label or 'all'}: median {np.median(values):.4g} ms" for label, values in found.items() if len(values)]
    return f"Cumulative distribution over the members. {'; '.join(told)}."
