"""Figure: goodput against latency with the scatter of the repetitions, one panel for each load.

After the throughput-delay plots of K. Winstein, A. Sivaraman and H. Balakrishnan, "Stochastic Forecasts Achieve High
Throughput and Low Delay over Cellular Networks" (NSDI 2013), which draw an ellipse for each scheme.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt
import numpy as np
import polars as pl

from bufferscope.figures import style
from bufferscope.figures.ends import apart
from bufferscope.figures.matrix import interval, mean_metric
from bufferscope.figures.parts import Layer, lines
from bufferscope.figures.source import NoDataError, ResultRecords, key_title, points, probe_path, variation
from bufferscope.metrics.statistics import Estimate

RTT, GOODPUT = "median round-trip time (ms)", "goodput (Mbit/s)"
RADIUS = math.sqrt(5.991)
"""Of an ellipse that holds 95 % of a normal distribution in the plane, in standard deviations (chi-square)."""
FEWEST = 3
"""Repetitions without which there is no ellipse."""
VERTICES = 24
MOST_PANELS, MOST_SERIES = 9, 24
LABEL, LEAST_HEIGHT = 15, 210
"""Pixels: the height of a name beside a panel, and the least height of a panel."""
LETTER, SPARE, LONGEST = 6.3, 10, 20
"""Pixels: the mean width of a letter, and the room around a name; and the most letters for which there is room."""
AXIS, TITLE_AND_AXIS = 72, 92
"""Pixels beside a panel for its axis of goodput with its title, and between panels below one another."""
BETWEEN = 12
"""Pixels between panels."""
WIDTH = 900
"""Pixels of the whole figure, unless the page sets its width."""
TICKS = [digit * 10.0**decade for decade in range(-2, 6) for digit in (1, 2, 5)]


@dataclass(frozen=True)
class Spot:
    """A point of the experiment in its panel."""

    panel: str
    series: str
    rtt: Estimate
    rate: Estimate


@dataclass(frozen=True)
class _Frame:
    """The extent of a panel, and the colours and the room for names, which all panels share."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int
    height: int
    room: int
    names: Sequence[str]
    said: str
    """What the series are."""


def trade_offs(result: ResultRecords) -> alt.ConcatChart:
    """A mark for each point at its median round-trip time and the goodput of all its traffic, with its name beside it.

    Both are means over the repetitions. The ellipse would hold 95 % of the repetitions if their scatter, in goodput and
    in the logarithm of the time, were normal. If queues vary, they are the marks, and each combination of the other
    varying keys is a panel; otherwise the first varying key is the marks. A point whose median falls among the lost
    probes has no mark.
    """
    probe_path(result.runs[0])
    spots, hidden = _spots(result)
    if not spots:
        raise NoDataError("trade_offs: no point has both goodput and a median round-trip time")
    panels, names = _distinct([spot.panel for spot in spots]), _distinct([spot.series for spot in spots])
    if len(panels) > MOST_PANELS or len(names) > MOST_SERIES:
        raise NoDataError(
            f"trade_offs: {len(names)} marks in {len(panels)} panels are too many to read; "
            f"at most {MOST_SERIES} in {MOST_PANELS}"
        )
    columns = 1 if len(panels) == 1 else 2
    room = math.ceil(min(LONGEST, max(map(len, names))) * LETTER) + SPARE
    beside = AXIS + room
    frame = _Frame(
        x=_span_of_times(spots),
        y=(0, 0),
        width=(WIDTH - (columns - 1) * BETWEEN) // columns - beside,
        height=max(LEAST_HEIGHT, LABEL * len(names)),
        room=room,
        names=names,
        said=_said(result),
    )
    drawn = [_panel(panel, [spot for spot in spots if spot.panel == panel], frame) for panel in panels]
    title = alt.TitleParams("Goodput against latency", subtitle=lines(_subtitle(spots, hidden)))
    spacing = {"row": TITLE_AND_AXIS, "column": beside + BETWEEN}
    chart = alt.concat(*drawn, columns=columns, spacing=spacing, bounds="flush").properties(
        title=title,
        description=_description(spots),
        usermeta={"wide": True, "panels": {"beside": beside, "between": BETWEEN, "columns": columns}},
    )
    configured: alt.ConcatChart = chart.configure(**style.config(style.LIGHT))
    return configured


def _spots(result: ResultRecords) -> tuple[list[Spot], list[str]]:
    """The points with both values, and the names of those whose median is hidden by losses."""
    found = variation(result)
    marks, panels = _split(found.keys)
    rtt_ms, mbit = mean_metric("rtt.p50_ms"), mean_metric("goodput.total_mbit")
    spots, hidden = [], []
    for point in points(result):
        values = found.of(point.first)
        panel, series = (", ".join(values[key] for key in keys if key in values) for keys in (panels, marks))
        rtt, rate = rtt_ms(point), mbit(point)
        if rtt and rate and rtt.mean > 0:
            spots.append(Spot(panel, series or "this run", rtt, rate))
        elif rate:
            hidden.append(", ".join(part for part in (series, panel) if part))
    return spots, hidden


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
    low, high = frame.y
    heights = [(rate - low) / (high - low) * frame.height for rate in rows["mbit"]]
    beside = [low + at / frame.height * (high - low) for at in _placed(heights, rows["rtt_ms"].to_list(), frame.height)]
    rows = rows.with_columns(pl.Series("at", beside))
    x = alt.X(
        "rtt_ms:Q",
        title=RTT,
        scale=alt.Scale(type="log", domain=list(frame.x), nice=False),
        axis=alt.Axis(values=TICKS, format=",~g"),
    )
    y = alt.Y("mbit:Q", title=GOODPUT, scale=alt.Scale(domain=list(frame.y), nice=False, zero=False))
    color = alt.Color("series:N", scale=alt.Scale(domain=list(frame.names)), legend=None)
    tips = [alt.Tooltip("series:N", title=frame.said)] if len(frame.names) > 1 else []
    for field, named in (("rtt_ms", RTT), ("mbit", GOODPUT)):
        tips.append(alt.Tooltip(f"{field}:Q", title=named, format=",.4~g"))
        if rows[f"{field}_low"].is_not_null().any():
            ends = {"low": "95 % interval of the mean, from", "high": "to"}
            tips += [alt.Tooltip(f"{field}_{end}:Q", title=said, format=",.4~g") for end, said in ends.items()]
    base = alt.Chart(rows).encode(x=x, color=color)
    leaders = base.mark_rule(strokeWidth=0.75, opacity=0.5, aria=False)
    layers: list[Layer] = [leaders.encode(y=y, x2=alt.value("width"), y2=alt.Y2("at:Q"))]
    ellipses = pl.DataFrame(
        [vertex for spot in spots for vertex in ellipse(spot)],
        schema={"series": pl.String, "order": pl.Int64, "rtt_ms": pl.Float64, "mbit": pl.Float64},
    )
    if not ellipses.is_empty():
        outline = alt.Chart(ellipses).mark_line(
            strokeWidth=1.25, fillOpacity=0.16, interpolate="linear-closed", clip=True, aria=False
        )
        fill = alt.Fill("series:N", scale=alt.Scale(domain=list(frame.names)), legend=None)
        layers.append(outline.encode(x=x, y=y, color=color, fill=fill, order="order:Q"))
    name = alt.Chart(rows).mark_text(align="left", baseline="middle", dx=4, clip=False, fontSize=12, limit=frame.room)
    corner = alt.Chart(pl.DataFrame({"words": ["better"]})).encode(x=alt.value(14), y=alt.value(13))
    layers += [
        base.mark_point(size=60).encode(y=y, tooltip=tips),
        name.encode(x=alt.value("width"), y=alt.Y("at:Q", title=GOODPUT), text="series:N", color=color),
        corner.mark_point(style="guide", shape="arrow", angle=315, size=180, aria=False),
        corner.mark_text(style="note", align="left", dx=10, aria=False).encode(text="words:N"),
    ]
    chart: alt.LayerChart = alt.LayerChart(layer=list(layers))
    chart.width, chart.height = frame.width, frame.height
    if panel:
        chart.title = alt.TitleParams(panel, fontSize=14)
    return chart


def _placed(heights: Sequence[float], times: Sequence[float], height: int) -> list[float]:
    """The heights of the names beside a panel, so that the lines to them hardly cross.

    Marks that are about as high form a group. In it, names of marks further right are nearer to the middle: the lines
    from marks further left go around them.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(heights)), key=lambda index: heights[index]):
        if groups and heights[index] - heights[groups[-1][-1]] < LABEL / 2:
            groups[-1].append(index)
        else:
            groups.append([index])
    order: list[int] = []
    wanted: list[float] = []
    for group in groups:
        own: list[int] = []
        for rank, index in enumerate(sorted(group, key=lambda index: -times[index])):
            own.insert(len(own) if rank % 2 else 0, index)
        order += own
        wanted += [sum(heights[index] for index in group) / len(group)] * len(group)
    inside = apart([place - LABEL / 2 for place in wanted], LABEL, height - LABEL)
    places = dict(zip(order, inside, strict=True))
    return [places[index] + LABEL / 2 for index in range(len(heights))]


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
    return {"series": spot.series, **values, **ends}


def _span_of_times(spots: Sequence[Spot]) -> tuple[float, float]:
    """The ends of the axis of times, which all panels share: round, and with room for the marks."""
    times = [spot.rtt.mean for spot in spots]
    low, high = min(times), max(times)
    if high / low < 4:
        middle = math.sqrt(high * low)
        low, high = min(low, middle / 2), max(high, middle * 2)
    return float(f"{low * (low / high) ** 0.1:.3g}"), float(f"{high * (high / low) ** 0.06:.3g}")


def _span_of_rates(spots: Sequence[Spot]) -> tuple[float, float]:
    """The ends of a panel's axis of goodput; differences of less than a tenth do not fill the panel."""
    rates = [spot.rate.mean for spot in spots]
    rates += [float(str(vertex["mbit"])) for spot in spots for vertex in ellipse(spot)]
    top = max(rates)
    if top <= 0:
        return 0.0, 1.0
    low = max(0.0, min(min(rates), 0.9 * top))
    return max(0.0, low - 0.08 * (top - low)), top + 0.2 * (top - low)


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _subtitle(spots: Sequence[Spot], hidden: Sequence[str]) -> str:
    told = ["Towards the upper left is better: more goodput with less waiting. Logarithmic axis of times."]
    repetitions = max(spot.rtt.n for spot in spots)
    if repetitions >= FEWEST:
        told.append(
            f"Marks: means of {repetitions} repetitions; ellipses: the region of 95 % of repetitions, if their "
            "scatter is normal."
        )
    if hidden:
        more = f" and {len(hidden) - 4} more" if len(hidden) > 4 else ""
        told.append(f"Without a mark, because most of their probes were lost: {'; '.join(hidden[:4])}{more}.")
    return " ".join(told)


def _description(spots: Sequence[Spot]) -> str:
    told = "; ".join(
        f"{', '.join(part for part in (spot.panel, spot.series) if part)}: "
        f"{spot.rate.mean:.4g} Mbit/s at {spot.rtt.mean:.4g} ms"
        for spot in spots
    )
    return f"Marks at goodput and median round-trip time. {told}."
