"""Figure: distributions of the round-trip time with a curve for each value of the first varying key, in panels.

For sweeps with more points than one set of axes can show: each combination of the other varying keys is a panel, and
all panels have the same axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, pointer, repetitions
from bufferscope.figures.charts.rtt_cdf import curve
from bufferscope.figures.declaring import figure
from bufferscope.figures.panels import Layout, arranged
from bufferscope.figures.source import NoDataError, ResultRecords, key_title, points, pooled, probe_path, variation
from bufferscope.metrics.rtt import rtts_ms

if TYPE_CHECKING:
    from bufferscope.figures.chart import PanelFigure

STEPS = 200
MOST_PANELS = 9
COLUMNS = 2
HEIGHT, LEAST_WIDTH, WIDTH = 210, 270, 900
"""Pixels of a panel's plot, of the least width of one, and of the whole figure unless the page sets its width."""
BESIDE, BETWEEN, BELOW = 80, 12, 92
"""Pixels beside a plot for its axis, between two panels, and below a plot for its axis and the next panel's title."""


@figure(needs=("probes",), shape="panels")
def rtt_cdf_panels(result: ResultRecords) -> PanelFigure:
    """The share of all probes sent that were answered within a time, for all repetitions of a point together.

    A curve that ends below 100 % has lost the remaining probes.
    """
    probe_path(result.runs[0])
    keys = variation(result).keys
    rtts = pooled(result, lambda run: pl.DataFrame({"rtt_ms": rtts_ms(run)}))
    known = points(result)
    steps = max(2, min(STEPS, parts.MOST_ROWS // len(known)))
    curves = []
    for point in known:
        values = variation(result).of(point.first)
        panel = ", ".join(values[key] for key in keys[1:] if key in values)
        series = values.get(keys[0], "") if keys else ""
        own = curve(point.label, rtts.filter(point=point.label)["rtt_ms"].to_numpy(), steps)
        curves.append(own.with_columns(panel=pl.lit(panel), series=pl.lit(series)))
    frame = pl.concat(curves)
    if frame.is_empty():
        raise NoDataError("rtt_cdf_panels: no probe was answered")
    panels = frame["panel"].unique(maintain_order=True).to_list()
    if len(panels) > MOST_PANELS:
        raise NoDataError(f"rtt_cdf_panels: {len(panels)} panels are too many to read; at most {MOST_PANELS}")
    columns = min(COLUMNS, len(panels))
    width = (WIDTH - (columns - 1) * BETWEEN) // columns - BESIDE
    said = key_title(keys[0]) if keys else ""
    drawn = [_panel(number, panel, frame, width, said) for number, panel in enumerate(panels)]
    note = "Logarithmic scale." if axes.is_wide(frame["rtt_ms"]) else ""
    lost = "A curve that ends below 100 %: the remaining probes were lost." if _has_losses(frame) else ""
    subtitle = parts.sentence(repetitions.pooled_note(result), lost, note)
    layout = Layout(columns, BELOW, BESIDE, BETWEEN, LEAST_WIDTH)
    return arranged(drawn, layout, ("Distribution of the round-trip time", subtitle), _description(frame))


def _panel(number: int, panel: str, frame: pl.DataFrame, width: int, said: str) -> alt.LayerChart:
    own = frame.filter(panel=panel).select("series", "rtt_ms", "percent")
    x = axes.fitted(alt.X, "rtt_ms", "round-trip time (ms)", frame["rtt_ms"])
    y = alt.Y("percent:Q", title="probes answered within (%)", scale=alt.Scale(domain=[0, 100]))
    names = frame["series"].unique(maintain_order=True).to_list()
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1) if said else None
    color = axes.series_color(names, said or None, legend)
    dash = axes.series_dash(names, said or None, legend)
    tips = [*([alt.Tooltip("series:N", title=said)] if said else []), axes.tooltip(x), axes.tooltip(y)]
    base = alt.Chart(own).encode(x=x, y=y, color=color)
    line = base.mark_line(interpolate="step-after")
    line = line.encode(strokeDash=dash, detail="series:N", opacity=pointer.dimmed(pointer.isolating(color)))
    unseen = base.mark_point(size=60, opacity=0, aria=False).encode(tooltip=tips)
    unseen.name = f"{pointer.HOVER}_{number}"
    chart = alt.LayerChart(layer=pointer.clickable([line, unseen], *([] if number else [color])))
    chart.width, chart.height = width, HEIGHT
    if panel:
        chart.title = alt.TitleParams(panel, fontSize=14)
    return chart


def _has_losses(frame: pl.DataFrame) -> bool:
    ends = frame.group_by("point").agg(pl.col("percent").max())
    return bool((ends["percent"] < 100).any())


def _description(frame: pl.DataFrame) -> str:
    told = []
    for (panel, series), rows in frame.group_by("panel", "series", maintain_order=True):
        half = rows.filter(pl.col("percent") >= 50)["rtt_ms"].min()
        said = f"half within {half:.4g} ms" if isinstance(half, float) else "more than half lost"
        told.append(f"{', '.join(str(part) for part in (panel, series) if part) or 'all probes'}: {said}")
    return f"Cumulative distributions of the probes' round-trip time in panels. {'; '.join(told)}."
