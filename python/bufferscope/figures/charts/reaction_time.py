"""Figure: latency and reaction times against overbuffering, all axes logarithmic, with the exponents that fit.

Gettys and Nichols, "Bufferbloat: dark buffers in the Internet" (2011), say that latency grows in proportion to the
buffer, and TCP's reaction time with its square: exponents of 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, pointer
from bufferscope.figures.declaring import figure
from bufferscope.figures.parts import Layer, sentence
from bufferscope.figures.source import NoDataError, PlottedPoint, ResultRecords, key_title, points, variation
from bufferscope.figures.stacked import stacked
from bufferscope.metrics import NotMeasuredError, metric
from bufferscope.metrics.buffers import true_bytes
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import Port, path, traffic_ends, traffic_named
from bufferscope.stats.estimate import student_t

if TYPE_CHECKING:
    from bufferscope.figures.chart import PanelFigure

HEIGHT = 200
MTU_BYTES = 1500
USUAL_S = 0.1
"""The round trip for which buffers are usually sized: a continental one, as the article says."""
X = "buffer (rate × 100 ms)"
TICKS = [digit * 10.0**decade for decade in range(-3, 4) for digit in (1, 2, 5)]
CLAIMED = "claimed"
HEAD_DROP = "pfifo_head_drop"
"""Not compared with the claims: senders hear of its drops a queue's delay earlier than of tail drop."""


@dataclass(frozen=True)
class Quantity:
    """What a panel shows."""

    name: str
    """Its name in sentences."""
    title: str
    """The title of its axis."""
    exponent: int
    """What the article says how it grows with the buffer."""


LATENCY = Quantity("latency", "queueing delay, p95 (ms)", 1)
EPOCH = Quantity("time between reactions", "between reactions (s)", 2)
SHARE = Quantity("time to a fair share", "to a fair share (s)", 2)
QUANTITIES = (LATENCY, EPOCH, SHARE)


@dataclass(frozen=True)
class Fit:
    """A power law, `factor * x ** exponent`, fitted by least squares of the logarithms."""

    exponent: float
    factor: float
    reach: float
    """Half the width of the exponent's 95 % confidence interval (Student's t); NaN with fewer than three values."""

    def at(self, x: float) -> float:
        """The fitted value."""
        return float(self.factor * x**self.exponent)

    def __str__(self) -> str:
        chance = "" if math.isnan(self.reach) else f" ± {self.reach:.2f}"
        return f"{self.exponent:.2f}{chance}"


@dataclass(frozen=True)
class RunMark:
    """A run: where its marks stand."""

    series: str
    queue: str
    buffer: float | None
    """The bottleneck's buffer in bandwidth-delay products; None of a discipline that is no FIFO."""
    values: Mapping[str, float]
    """By the names of the quantities."""


@figure(needs=("flows", "sojourns"), shape="panels", only_of="a newcomer")
def reaction_time(result: ResultRecords) -> PanelFigure:
    """Queueing delay, time between a flow's reactions, and time until a newcomer has its fair share; a mark per run.

    The first two are of runs with a single bulk connection, the last of runs with a newcomer. The buffer is that of the
    path's slowest port, in products of its rate and 100 ms, for which buffers are usually sized. Lines are fitted power
    laws, one for each combination of the other varying keys; dashed lines have the article's exponents, and the fitted
    value at the smallest buffer. Other disciplines than a FIFO have no position on the axis: a note tells their means.
    """
    runs = [run for point in points(result) for run in _runs(result, point)]
    placed = [run for run in runs if run.buffer is not None]
    if not placed:
        raise NoDataError(
            "reaction_time: no run has a FIFO of a known size before a constant rate and a flow that reacts"
        )
    frame = pl.DataFrame(
        [
            {"series": run.series, "buffer": run.buffer}
            | {name: float(f"{value:.5g}") for name, value in run.values.items()}
            for run in placed
        ]
    )
    low, high = axes.span(frame["buffer"])
    x = alt.X(
        "buffer:Q",
        title=X,
        scale=alt.Scale(type="log", domain=[low / 1.1, high * 1.1], nice=False),
        axis=alt.Axis(values=TICKS),
    )
    series = frame["series"].unique(maintain_order=True).to_list()
    legend = alt.Legend(symbolOpacity=1)
    color = axes.series_color(series, _said(result), legend) if len(series) > 1 else alt.Undefined
    panels, told = [], []
    for quantity in QUANTITIES:
        known = frame.filter(pl.col(quantity.name).is_finite() & (pl.col(quantity.name) > 0))
        if known.is_empty():
            continue
        fits = {name: found for name in series if (found := fit(*_values(known.filter(series=name), quantity)))}
        panels.append(_panel(known, quantity, fits, x, color))
        words = ", ".join(f"{name} {found}".strip() for name, found in fits.items())
        told.append(f"Exponent of the {quantity.name}: {words}; in the article {quantity.exponent} (dashed).")
    if not panels:
        raise NoDataError("reaction_time: no flow reacted, and no newcomer had its fair share")
    hidden = frame.filter(pl.col(SHARE.name).is_infinite()).height
    never = f"Left out: {hidden} runs in which the newcomer never had its share." if hidden else ""
    chance = "±: half of the 95 % confidence interval." if any("±" in words for words in told) else ""
    aside = _aside([run for run in runs if run.buffer is None])
    heading = ("Overbuffering: latency and reaction times", sentence(*told, chance, never, aside))
    description = sentence("Marks and fitted power laws.", *told, aside)
    return stacked(panels, [HEIGHT] * len(panels), [""] * len(panels), heading, description, color)


def _runs(result: ResultRecords, point: PlottedPoint) -> Iterator[RunMark]:
    """The runs of a point in which one of the quantities is known."""
    found = variation(result)
    values = found.of(point.first)
    keys = [key for key in found.keys if key in values]
    series = ", ".join(values[key] for key in keys if _names_series(key))
    queue = ", ".join(values[key] for key in keys if _of_queue(key))
    for run in point.runs:
        entries = [entry for entry in traffic_named(run.scenario, "tcp") if entry["flows"]]
        if not entries:
            continue
        there = path(run.scenario, *traffic_ends(run.scenario, entries[0]))
        rated = [port for port in there if len(port.rate) == 1]
        if not rated:
            continue
        slowest = min(rated, key=lambda port: port.rate[0].bits_per_second)
        known = dict.fromkeys((quantity.name for quantity in QUANTITIES), math.nan)
        if sum(entry["flows"] for entry in entries) == 1:
            known[LATENCY.name] = _value(run, f"sojourn.{slowest.name}.p95_ms")
            known[EPOCH.name] = _value(run, f"epoch.{entries[0]['name']}_s")
        else:
            shares = [_value(run, f"fair_after.{entry['name']}_s") for entry in entries]
            known[SHARE.name] = next((share for share in shares if not math.isnan(share)), math.nan)
        if not all(map(math.isnan, known.values())):
            yield RunMark(series, queue, _products(slowest), known)


def _value(run: RunRecords, name: str) -> float:
    """A metric; NaN if it is not measured."""
    try:
        return metric(run, name).number
    except NotMeasuredError:
        return math.nan


def _products(port: Port) -> float | None:
    """The limit of tail drop in products of its port's rate and `USUAL_S`; None of other disciplines."""
    limit = None if port.queue["qdisc"] == HEAD_DROP else true_bytes(port, port.link_layer.frame_bytes(MTU_BYTES))
    if limit is None:
        return None
    return float(f"{8 * limit / (port.rate[0].bits_per_second * USUAL_S):.5g}")


def _names_series(key: str) -> bool:
    """Whether a key's values are in the names of series: not the queue, nor how many flows there are."""
    return not _of_queue(key) and key.split(".")[-1] != "flows"


def _of_queue(key: str) -> bool:
    return "queue" in key.split(".")


def _said(result: ResultRecords) -> str:
    return ", ".join(dict.fromkeys(key_title(key) for key in variation(result).keys if _names_series(key)))


def _values(rows: pl.DataFrame, quantity: Quantity) -> tuple[Sequence[float], Sequence[float]]:
    return rows["buffer"].to_list(), rows[quantity.name].to_list()


def _panel(rows: pl.DataFrame, quantity: Quantity, fits: Mapping[str, Fit], x: alt.X, color: Any) -> list[Layer]:
    """The marks of a quantity, with the fitted lines and those of the article."""
    low, high = axes.span(rows["buffer"])
    lines = [
        {
            "series": name,
            "buffer": at,
            quantity.name: float(f"{found.at(at):.5g}"),
            CLAIMED: float(f"{found.at(low) * (at / low) ** quantity.exponent:.5g}"),
        }
        for name, found in fits.items()
        for at in (low, high)
    ]
    everything = pl.concat([rows[quantity.name], *(pl.Series([line[quantity.name], line[CLAIMED]]) for line in lines)])
    bottom, top = axes.span(everything)
    scale = alt.Scale(type="log", domain=[bottom / 1.2, top * 1.2], nice=False)
    ticks = alt.Axis(values=[digit * 10.0**decade for decade in range(-3, 7) for digit in (1, 2, 5)], format=",~g")
    y = alt.Y(f"{quantity.name}:Q", title=quantity.title, scale=scale, axis=ticks)
    isolated = pointer.isolating(color)
    marks = alt.Chart(rows).mark_point(size=30, clip=True).encode(opacity=pointer.dimmed(isolated, 0.6))
    layers: list[Layer] = [
        marks.encode(x=x, y=y, color=color, tooltip=[*_tip(color), axes.tooltip(x), axes.tooltip(y)])
    ]
    if lines:
        drawn = alt.Chart(pl.DataFrame(lines))
        claimed = drawn.mark_line(style="claimed", clip=True).encode(
            x=x, y=alt.Y(f"{CLAIMED}:Q", title=quantity.title), color=color, opacity=pointer.dimmed(isolated, 0.8)
        )
        opacity = pointer.dimmed(isolated)
        layers += [claimed, drawn.mark_line(clip=True).encode(x=x, y=y, color=color, opacity=opacity)]
    return layers


def _tip(color: Any) -> list[alt.Tooltip]:
    return [] if color is alt.Undefined else [alt.Tooltip("series:N", title=axes.written(color)["title"])]


def _aside(runs: Sequence[RunMark]) -> str:
    """The means of the disciplines that are no FIFO."""
    told = []
    for queue, series in dict.fromkeys((run.queue, run.series) for run in runs):
        own = [run.values for run in runs if (run.queue, run.series) == (queue, series)]
        means = [_mean([values[quantity.name] for values in own]) for quantity in QUANTITIES]
        units = ("ms", "s", "s")
        words = ", ".join(
            f"{mean:.3g} {unit}" if math.isfinite(mean) else "never"
            for mean, unit in zip(means, units, strict=True)
            if not math.isnan(mean)
        )
        told.append(f"{', '.join(part for part in (series, queue) if part)}: {words}")
    return f"Without a place on the axis: {'; '.join(told)}." if told else ""


def _mean(values: Sequence[float]) -> float:
    """The mean of the known values; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def fit(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """The power law of these positive values; None with fewer than two different `x`."""
    if len(set(x)) < 2:
        return None
    across, up = np.log(x), np.log(y)
    slope, offset = np.polyfit(across, up, 1)
    freedom = len(x) - 2
    reach = math.nan
    if freedom > 0:
        residual = up - (slope * across + offset)
        error = math.sqrt(float(residual @ residual) / freedom / float(((across - across.mean()) ** 2).sum()))
        reach = student_t(freedom) * error
    return Fit(float(slope), math.exp(float(offset)), reach)
