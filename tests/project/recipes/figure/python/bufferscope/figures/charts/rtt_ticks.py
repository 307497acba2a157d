"""Figure: every round-trip time as a tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import ResultRecords, pooled
from bufferscope.model.network import probers

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure


@figure(needs=("probes",), fits=probers)
def rtt_ticks(result: ResultRecords) -> LayerFigure:
    """A tick for each round-trip time in ms, in the colour of its point."""
    frame = pooled(result, lambda run: run.probes.select(rtt_ms=pl.col("rtt_ns") / 1e6)).drop_nulls()
    x = alt.X("rtt_ms:Q", title="round-trip time (ms)")
    ticks = alt.Chart(frame).mark_tick().encode(x=x, color=axes.point_color(result))
    return parts.framed([ticks], "Round-trip times", "", f"{frame.height} ticks.")
