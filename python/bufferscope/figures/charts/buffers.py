"""Figure: bandwidth against the size of the buffer, as a test infers it and as it is; one mark per session.

With the population of `dark-netalyzr`, this is figure 5 of Gettys and Nichols, "Bufferbloat: dark buffers in the
Internet" (2011): both axes are logarithmic, and the diagonals join buffers that add equal delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, pointer
from bufferscope.figures.declaring import figure
from bufferscope.figures.panels import Layout, arranged
from bufferscope.figures.parts import MOST_ROWS, sentence
from bufferscope.figures.source import NoDataError, PlottedPoint, ResultRecords, points
from bufferscope.metrics import of_each
from bufferscope.metrics.buffers import DIRECTIONS, KIB, MBIT
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import traffic_named

if TYPE_CHECKING:
    from bufferscope.figures.chart import PanelFigure

DELAYS_S = (0.1, 0.5, 1, 2, 4)
"""The diagonals: those of the document, and the delay from which telephony suffers."""
TITLES = {"up": "uplink", "down": "downlink"}
WHICH = {"inferred_kib": "inferred buffer (KB)", "true_kib": "true buffer (KB)"}
PANEL = 300
LAYOUT = Layout(columns=2, below=96, beside=84, between=8, least=160)
ALL = "all"
"""The group of runs that are not members of a population."""


@figure(needs=("estimates",), shape="panels")
def buffers(result: ResultRecords) -> PanelFigure:
    """A scatter for each direction: of the inferred and, beside it, of the true sizes.

    It shows the first point of the sweep, and of a large population the first members, which are a random sample.
    """
    point = points(result)[0]
    shown = point.runs[:MOST_ROWS]
    frame = _sessions(shown)
    panels = [(direction, which) for direction in ("up", "down") for which in WHICH]
    shown_panels = [
        (own, direction, which)
        for direction, which in panels
        if not (own := frame.filter(pl.col(f"{direction}_{which}") > 0, pl.col(f"{direction}_mbit") > 0)).is_empty()
    ]
    if not shown_panels:
        raise NoDataError("buffers: no test of the path's buffers had an answer under load")
    drawn = [_panel(*panel, is_first=number == 0) for number, panel in enumerate(shown_panels)]
    heading = "Bandwidth against the size of the buffer", _subtitle(point, len(shown))
    return arranged(drawn, LAYOUT, heading, _description(frame))


def _sessions(runs: Sequence[RunRecords]) -> pl.DataFrame:
    """One row per run: `group`, and for each direction the bandwidth and the sizes."""
    fields = [f"{direction}_{name}" for direction in DIRECTIONS for name in ("mbit", *WHICH)]
    rows = []
    for run, found in zip(runs, of_each(runs), strict=True):
        for entry in traffic_named(run.scenario, "netalyzr"):
            values = [found.get(f"buffer.{entry['name']}.{field}") for field in fields]
            group = run.meta["member"]["group"] if "member" in run.meta else ALL
            rows.append((run.seed, group, *(None if value is None else _rounded(value) for value in values)))
    if not rows:
        raise NoDataError("buffers: no traffic of kind netalyzr")
    schema = {"session": pl.Int64, "group": pl.String} | dict.fromkeys(fields, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _rounded(value: float) -> float:
    """Three digits, which is more than a mark's position shows."""
    return float(f"{value:.3g}")


def _panel(frame: pl.DataFrame, direction: str, which: str, *, is_first: bool) -> alt.LayerChart:
    field = f"{direction}_{which}"
    x_scale = alt.Scale(type="log", base=2, domain=[1, 4096], nice=False)
    y_scale = alt.Scale(type="log", domain=[0.016, 24], nice=False)
    x = alt.X(
        f"{field}:Q", title=WHICH[which], scale=x_scale, axis=alt.Axis(values=[4**n for n in range(7)], format="d")
    )
    ticks = [0.016, 0.064, 0.25, 1, 4, 16]
    y = alt.Y(
        f"{direction}_mbit:Q", title="bandwidth (Mbit/s)", scale=y_scale, axis=alt.Axis(values=ticks, format="~g")
    )
    groups = frame["group"].unique(maintain_order=True).sort().to_list()
    legend = alt.Legend(symbolOpacity=1)
    color = axes.series_color(groups, None, legend, "group") if groups != [ALL] else alt.Undefined
    tips = [
        alt.Tooltip("session:Q"),
        alt.Tooltip("group:N"),
        *(alt.Tooltip(f"{direction}_{name}:Q", title=words) for name, words in (("mbit", "Mbit/s"), *WHICH.items())),
    ]
    marks = alt.Chart(frame).mark_point(size=8, clip=True).encode(x=x, y=y, color=color, tooltip=tips)
    marks = marks.encode(opacity=pointer.dimmed(pointer.isolating(color), 0.5))
    diagonals = pl.DataFrame(
        [
            {"delay": f"{delay_s:g} s", "kib": kib, "mbit": kib * KIB * 8 / delay_s / MBIT}
            for delay_s in DELAYS_S
            for kib in (1.0, 4096.0)
        ]
    )
    at = {"x": alt.X("kib:Q", title=WHICH[which], scale=x_scale), "y": alt.Y("mbit:Q", scale=y_scale)}
    guides = alt.Chart(diagonals).mark_line(style="guide", strokeWidth=1, clip=True).encode(**at, detail="delay:N")
    # Each delay is written where its diagonal leaves the plot.
    ends = pl.DataFrame([_end(delay_s) for delay_s in DELAYS_S])
    written = alt.Chart(ends).mark_text(style="note", align="right", baseline="bottom", dx=-3, fontSize=11)
    title = f"{TITLES[direction]}: {'inferred' if which == 'inferred_kib' else 'true'}"
    layers = [guides, marks, written.encode(**at, text="delay:N")]
    return alt.LayerChart(layer=pointer.clickable(layers, *([color] if is_first else []))).properties(
        width=PANEL, height=PANEL, title=alt.TitleParams(title, fontSize=14)
    )


def _end(delay_s: float) -> dict[str, object]:
    """The position of a diagonal's name: where it meets the upper or the right edge."""
    top, right = 20.0, 3600.0
    kib = min(right, top * MBIT * delay_s / 8 / KIB)
    return {"delay": f"{delay_s:g} s", "kib": kib, "mbit": kib * KIB * 8 / delay_s / MBIT}


def _subtitle(point: PlottedPoint, shown: int) -> str:
    sessions = len(point.runs)
    sample = f"The first {shown:,} of {sessions:,} sessions, which are a random sample." if shown < sessions else ""
    which = f"{point.label}." if point.label else ""
    return sentence(which, "Diagonals: equal delay. Left: as the test infers the size; right: as it is.", sample)


def _description(frame: pl.DataFrame) -> str:
    told = []
    for group, own in ((str(key[0]), own) for key, own in frame.group_by("group", maintain_order=True)):
        inferred = own["up_inferred_kib"].drop_nulls().to_numpy()
        if len(inferred):
            told.append(f"{group}: {len(own)} sessions, median inferred uplink buffer {np.median(inferred):.4g} KB")
    return f"Scatter of bandwidth against buffer size. {'; '.join(told)}."
