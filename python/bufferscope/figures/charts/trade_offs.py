"""Figure: goodput against latency with the scatter of the repetitions, one panel for each load.

After the throughput-delay plots of K. Winstein, A. Sivaraman and H. Balakrishnan, "Stochastic Forecasts Achieve High
Throughput and Low Delay over Cellular Networks" (NSDI 2013), which draw an ellipse for each scheme.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import labelled, pointer
from bufferscope.figures.declaring import figure
from bufferscope.figures.families import FAMILIES, families
from bufferscope.figures.labelled import Mark, Plane, PlotAxis, Surroundings
from bufferscope.figures.matrix import interval, mean_metric
from bufferscope.figures.panels import Layout, arranged
from bufferscope.figures.source import (
    NoDataError,
    PlottedPoint,
    ResultRecords,
    key_title,
    points,
    probe_path,
    variation,
)
from bufferscope.metrics import metric
from bufferscope.model.network import OVER_TCP, traffic_named
from bufferscope.stats.estimate import Estimate, estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import Layer, PanelFigure

RTT, GOODPUT, TCP_GOODPUT = "median round-trip time (ms)", "goodput (Mbit/s)", "TCP goodput (Mbit/s)"
RADIUS = math.sqrt(5.991)
"""Of an ellipse that holds 95 % of a normal distribution in the plane, in standard deviations (chi-square)."""
FEWEST = 3
"""Repetitions without which there is no ellipse."""
VERTICES = 24
MOST_PANELS, MOST_SERIES = 9, 24
LEAST_WIDTH, HEIGHT = 270, 220
"""Pixels of a panel: the width for which its labels are placed, and the height."""
AXIS, TITLE_AND_AXIS = 72, 92
"""Pixels beside a panel for its axis of goodput with its title, and between panels below one another."""
RIGHT = 8
"""Pixels at the right of a panel, for the last number of its axis of times."""
BETWEEN = 12
"""Pixels between panels."""
WIDTH = 900
"""Pixels of the whole figure, unless the page sets its width."""
CORNER = (0.0, 0.0, 66.0, 22.0)
"""Left, top, right and bottom of the words that say which corner is better, in pixels."""
COLOURS = 8
"""The most names that have a colour each."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
"""The marks of the families of disciplines."""
TICKS = [digit * 10.0**decade for decade in range(-2, 6) for digit in (1, 2, 5)]


@dataclass(frozen=True)
class Spot:
    """A point of the experiment in its panel."""

    panel: str
    series: str
    rtt: Estimate
    rate: Estimate
    kind: str = ""
    """What its colour stands for: the family of its discipline, or its own name."""


@dataclass(frozen=True)
class _Frame:
    """The extent of a panel, and what all panels share."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int
    kinds: Sequence[str]
    """Each has a colour."""
    families: bool
    """Whether the colours are those of families of disciplines."""
    said: str
    """What the series are."""
    is_first: bool = False
    """Whether it is the first panel, which has the legend's choice."""
    goodput: str = GOODPUT
    """The title of the panel's axis of goodput."""


@figure(needs=("flows", "probes"), shape="panels")
def trade_offs(result: ResultRecords) -> PanelFigure:
    """A mark for each point at its median round-trip time and the goodput of all its traffic, with its name beside it.

    Both are means over the repetitions. The ellipse would hold 95 % of the repetitions if their scatter, in goodput and
    in the logarithm of the time, were normal. If queues vary, they are the marks, and each combination of the other
    varying keys is a panel; otherwise the first varying key is the marks. A point whose median falls among the lost
    probes has no mark. In a panel with both TCP and datagrams, the goodput is that of TCP: what the datagrams leave to
    flows that give way. Disciplines have the colours of their families; marks that nearly coincide share a label.
    """
    probe_path(result.runs[0])
    spots, hidden, without_datagrams = _spots(result)
    if not spots:
        raise NoDataError("trade_offs: no point has both goodput and a median round-trip time")
    panels, names = _distinct([spot.panel for spot in spots]), _distinct([spot.series for spot in spots])
    if len(panels) > MOST_PANELS or len(names) > MOST_SERIES:
        raise NoDataError(
            f"trade_offs: {len(names)} marks in {len(panels)} panels are too many to read; "
            f"at most {MOST_SERIES} in {MOST_PANELS}"
        )
    columns = 1 if len(panels) == 1 else 2
    kinds = _distinct([spot.kind for spot in spots])
    of_families = set(kinds) <= set(FAMILIES)
    frame = _Frame(
        x=_span_of_times(spots),
        y=(0, 0),
        width=(WIDTH - (columns - 1) * BETWEEN) // columns - AXIS - RIGHT,
        kinds=[each for each in FAMILIES if each in kinds] if of_families else kinds,
        families=of_families,
        said=_said(result),
    )
    drawn = [
        _panel(
            panel,
            [spot for spot in spots if spot.panel == panel],
            replace(frame, is_first=number == 0, goodput=TCP_GOODPUT if panel in without_datagrams else GOODPUT),
        )
        for number, panel in enumerate(panels)
    ]
    subtitle = _subtitle(spots, hidden, bool(without_datagrams))
    layout = Layout(columns, TITLE_AND_AXIS, AXIS + RIGHT, BETWEEN, LEAST_WIDTH)
    return arranged(drawn, layout, ("Goodput against latency", subtitle), _description(spots))


def _spots(result: ResultRecords) -> tuple[list[Spot], dict[str, list[str]], set[str]]:
    """The points with both values, the names of the others by panel, and the panels that show the goodput of TCP only.

    The others are those whose median is hidden by losses.
    """
    found = variation(result)
    marks, panels = _split(found.keys)
    known = points(result)
    titled = [
        [", ".join(values[key] for key in keys if key in values) for keys in (panels, marks)]
        for values in (found.of(point.first) for point in known)
    ]
    tcp_only = {panel for point, (panel, _) in zip(known, titled, strict=True) if _mixed(point)}
    names = _distinct([series for _, series in titled])
    each = families(known) if any("queue" in key.split(".") for key in marks) else None
    kinds = each or [series if len(names) <= COLOURS else "" for _, series in titled]
    rtt_ms, mbit = mean_metric("rtt.p50_ms"), mean_metric("goodput.total_mbit")
    spots: list[Spot] = []
    hidden: dict[str, list[str]] = {}
    for point, (panel, series), kind in zip(known, titled, kinds, strict=True):
        rtt, rate = rtt_ms(point), _tcp_mbit(point) if panel in tcp_only else mbit(point)
        if rtt and rate and rtt.mean > 0:
            spots.append(Spot(panel, series or "this run", rtt, rate, kind))
        elif rate:
            hidden.setdefault(panel, []).append(series or "this run")
    return spots, hidden, tcp_only


def _mixed(point: PlottedPoint) -> bool:
    """Whether it has flows over TCP beside datagrams."""
    scenario = point.first.scenario
    return bool(traffic_named(scenario, *OVER_TCP) and traffic_named(scenario, "udp"))


def _tcp_mbit(point: PlottedPoint) -> Estimate:
    """The mean goodput of all traffic over TCP."""
    return estimate(
        [
            sum(metric(run, f"goodput.{entry['name']}_mbit").number for entry in traffic_named(run.scenario, *OVER_TCP))
            for run in point.runs
        ]
    )


def _split(keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """The keys whose values are marks, and those whose values are panels."""
    marks = [key for key in keys if "queue" in key.split(".")] or list(keys[:1])
    return marks, [key for key in keys if key not in marks]


def _said(result: ResultRecords) -> str:
    """What the marks are, for tooltips."""
    return ", ".join(dict.fromkeys(key_title(key) for key in _split(variation(result).keys)[0])) or "run"


def _panel(panel: str, spots: Sequence[Spot], frame: _Frame) -> alt.LayerChart:
    frame = replace(frame, y=_span_of_rates(spots))
    rows = pl.DataFrame([_row(spot) for spot in spots])
    x = alt.X(
        "rtt_ms:Q",
        title=RTT,
        scale=alt.Scale(type="log", domain=list(frame.x), nice=False),
        axis=alt.Axis(values=TICKS, format=",~g"),
    )
    y = alt.Y("mbit:Q", title=frame.goodput, scale=alt.Scale(domain=list(frame.y), nice=False, zero=False))
    legend = alt.Legend(title=None, columns=2, columnPadding=8) if frame.families else None
    color = alt.Color("kind:N", scale=alt.Scale(domain=list(frame.kinds)), legend=legend)
    tips = [alt.Tooltip("series:N", title=frame.said)] if rows["series"].n_unique() > 1 or panel else []
    for field, named in (("rtt_ms", RTT), ("mbit", frame.goodput)):
        tips.append(alt.Tooltip(f"{field}:Q", title=named, format=",.4~g"))
        if rows[f"{field}_low"].is_not_null().any():
            ends = {"low": "95 % interval of the mean, from", "high": "to"}
            tips += [alt.Tooltip(f"{field}_{end}:Q", title=said, format=",.4~g") for end, said in ends.items()]
    isolated = pointer.isolating(color)
    layers: list[Layer] = []
    ellipses = pl.DataFrame(
        [vertex | {"kind": spot.kind} for spot in spots for vertex in ellipse(spot)],
        schema={"series": pl.String, "order": pl.Int64, "rtt_ms": pl.Float64, "mbit": pl.Float64, "kind": pl.String},
    )
    if not ellipses.is_empty():
        outline = alt.Chart(ellipses).mark_line(
            strokeWidth=1.25, fillOpacity=0.16, interpolate="linear-closed", clip=True, aria=False
        )
        fill = alt.Fill("kind:N", scale=alt.Scale(domain=list(frame.kinds)), legend=legend)
        outline = outline.encode(x=x, y=y, color=color, fill=fill, detail="series:N", order="order:Q")
        layers.append(outline.encode(opacity=pointer.dimmed(isolated)))
    plane = Plane(PlotAxis.of(x, LEAST_WIDTH), PlotAxis.of(y, HEIGHT))
    outlines = [plane.position(vertex["rtt_ms"], vertex["mbit"]) for vertex in ellipses.iter_rows(named=True)]
    names = [Mark(spot.rtt.mean, spot.rate.mean, spot.series, spot.kind) for spot in spots]
    around = Surroundings([CORNER], outlines)
    corner = alt.Chart(pl.DataFrame({"words": ["better"]})).encode(x=alt.value(14), y=alt.value(13))
    marks = alt.Chart(rows).mark_point(size=60).encode(x=x, y=y, color=color, tooltip=tips)
    marks = marks.encode(opacity=pointer.dimmed(isolated))
    if frame.families:
        shapes = list(SHAPES)[: len(frame.kinds)]
        marks = marks.encode(
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=list(frame.kinds), range=shapes), legend=legend)
        )
    layers += [
        *labelled.layers(names, plane, (x, y, color), frame.kinds, around, pointer.dimmed(isolated)),
        marks,
        corner.mark_point(style="guide", shape="arrow", angle=315, size=180, aria=False),
        corner.mark_text(style="note", align="left", dx=10, aria=False).encode(text="words:N"),
    ]
    chart = alt.LayerChart(layer=pointer.clickable(layers, color) if frame.is_first else layers)
    chart.width, chart.height = frame.width, HEIGHT
    if panel:
        chart.title = alt.TitleParams(panel, fontSize=14)
    return chart


def ellipse(spot: Spot) -> list[dict[str, object]]:
    """The vertices of the 95 % region of a point's repetitions; none with too few, or if they are all the same."""
    times, rates = spot.rtt.values, spot.rate.values
    if len(times) != len(rates) or len(times) < FEWEST or min(times) <= 0:
        return []
    sample = np.array([np.log(times), rates])
    lengths, axes = np.linalg.eigh(np.cov(sample))
    if lengths[-1] <= 0:
        return []
    angles = np.linspace(0, 2 * np.pi, VERTICES, endpoint=False)
    circle = RADIUS * np.array([np.cos(angles), np.sin(angles)])
    around = axes @ (np.sqrt(np.clip(lengths, 0, None))[:, np.newaxis] * circle)
    centre = np.array([math.log(spot.rtt.mean), spot.rate.mean])[:, np.newaxis]
    return [
        {"series": spot.series, "order": order, "rtt_ms": float(f"{math.exp(x):.5g}"), "mbit": float(f"{y:.6g}")}
        for order, (x, y) in enumerate((centre + around).T)
    ]


def _row(spot: Spot) -> dict[str, object]:
    known = {"rtt_ms": spot.rtt, "mbit": spot.rate}
    values = {name: float(f"{found.mean:.6g}") for name, found in known.items()}
    ends = {f"{name}_{end}": value for name, found in known.items() for end, value in interval(found).items()}
    return {"series": spot.series, "kind": spot.kind, **values, **ends}


def _span_of_times(spots: Sequence[Spot]) -> tuple[float, float]:
    """The ends of the axis of times, which all panels share: round, and with room for the marks."""
    times = [spot.rtt.mean for spot in spots]
    low, high = min(times), max(times)
    if high / low < 4:
        middle = math.sqrt(high) * math.sqrt(low)
        low, high = min(low, middle / 2), max(high, middle * 2)
    return float(f"{low * (low / high) ** 0.1:.3g}"), float(f"{high * (high / low) ** 0.06:.3g}")


def _span_of_rates(spots: Sequence[Spot]) -> tuple[float, float]:
    """The ends of a panel's axis of goodput; differences of less than a seventh do not fill the panel."""
    rates = [spot.rate.mean for spot in spots]
    rates += [float(str(vertex["mbit"])) for spot in spots for vertex in ellipse(spot)]
    top = max(rates)
    if top <= 0:
        return 0.0, 1.0
    low = max(0.0, min(min(rates), 0.85 * top))
    return max(0.0, low - 0.08 * (top - low)), top + 0.2 * (top - low)


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _subtitle(spots: Sequence[Spot], hidden: Mapping[str, Sequence[str]], tcp_only: bool) -> str:
    told = ["Towards the upper left is better: more goodput with less waiting. Logarithmic axis of times."]
    if tcp_only:
        told.append("TCP goodput: what datagrams, which never slow down, leave to the flows that do.")
    repetitions = max(spot.rtt.n for spot in spots)
    if repetitions >= FEWEST:
        told.append(
            f"Marks: means of {repetitions} repetitions; ellipses: 95 % of repetitions, if they scatter normally."
        )
    if hidden:
        named = "; ".join(
            f"{panel}: {', '.join(names)}" if panel else ", ".join(names) for panel, names in hidden.items()
        )
        told.append(f"No mark, because most pings were lost: {named}.")
    return " ".join(told)


def _description(spots: Sequence[Spot]) -> str:
    told = "; ".join(
        f"{', '.join(part for part in (spot.panel, spot.series) if part)}: "
        f"{spot.rate.mean:.4g} Mbit/s at {spot.rtt.mean:.4g} ms"
        for spot in spots
    )
    return f"Marks at goodput and median round-trip time. {told}."
