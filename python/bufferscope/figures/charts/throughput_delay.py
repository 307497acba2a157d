"""Figure: throughput and delay against the packets in flight, one above the other.

This is figure 1 of Gettys and Nichols, "Bufferbloat: dark buffers in the Internet" (2011): the throughput rises until
the path is full, and from there on the delay does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, pointer
from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import mean_metric
from bufferscope.figures.parts import Layer, sentence
from bufferscope.figures.source import NoDataError, ResultRecords, bottleneck, key_title, points, probe_path, variation
from bufferscope.figures.stacked import stacked
from bufferscope.metrics.capacity import capacities
from bufferscope.metrics.goodput import MBIT
from bufferscope.model.network import OVER_TCP, traffic_named

if TYPE_CHECKING:
    from bufferscope.figures.chart import PanelFigure

HEIGHT = 210
IN_FLIGHT, THROUGHPUT, DELAY = "in flight (packets)", "goodput (Mbit/s)", "median RTT (ms)"
WINDOW = "window"
"""The last word of a swept key that sets the packets in flight."""
SHOWN = {"mbit": THROUGHPUT, "rtt_ms": DELAY}


@figure(needs=("flows", "probes", "queues", "capacity"), shape="panels")
def throughput_delay(result: ResultRecords) -> PanelFigure:
    """Goodput of all traffic, and below it the median round-trip time, against the mean number of packets in flight.

    A mark is the mean over a point's repetitions. If a window is swept, a line joins the points that differ in it
    alone, and the other varying values are its name; otherwise each point has a colour. Dashed: the bottleneck's rate.
    A point whose median falls among lost probes has no mark in the lower panel.
    """
    probe_path(result.runs[0])
    frame = _frame(result)
    if frame.is_empty():
        raise NoDataError("throughput_delay: no point has TCP data in flight and a goodput")
    most = 1.03 * axes.span(frame["in_flight"])[1]
    x = alt.X("in_flight:Q", title=IN_FLIGHT, scale=alt.Scale(domain=[0, most], nice=False))
    panels = [
        [*_rate(result, frame, x), *_lines(result, frame, x, "mbit", THROUGHPUT)],
        *([_lines(result, frame.drop_nulls("rtt_ms"), x, "rtt_ms", DELAY)] if frame["rtt_ms"].count() else []),
    ]
    heading = ("Throughput and delay against the packets in flight", _subtitle(result, frame))
    color, *_ = _series(result, frame["series"].unique(maintain_order=True).to_list())
    return stacked(panels, [HEIGHT] * len(panels), [""] * len(panels), heading, _description(frame), color)


def _frame(result: ResultRecords) -> pl.DataFrame:
    """One row per point: `series, point, in_flight, mbit, rtt_ms`, the last one null if losses hide it."""
    others = _others(result)
    mbit, rtt_ms = mean_metric("goodput.total_mbit"), mean_metric("rtt.p50_ms")
    rows: list[tuple[object, ...]] = []
    for point in points(result):
        values = variation(result).of(point.first)
        traffic = traffic_named(point.first.scenario, *OVER_TCP)
        held = [mean_metric(f"inflight.{entry['name']}.mean_packets")(point) for entry in traffic]
        known = [each.mean for each in held if each]
        rate, delay = mbit(point), rtt_ms(point)
        if known and rate:
            series = ", ".join(values[key] for key in others if key in values)
            numbers = (sum(known), rate.mean, delay.mean if delay else None)
            rows.append((series, point.label, *(None if each is None else float(f"{each:.5g}") for each in numbers)))
    schema = {"series": pl.String, "point": pl.String} | dict.fromkeys(("in_flight", *SHOWN), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _others(result: ResultRecords) -> list[str]:
    """The varying keys that are not windows."""
    return [key for key in variation(result).keys if key.split(".")[-1] != WINDOW]


def _lines(result: ResultRecords, frame: pl.DataFrame, x: alt.X, value: str, title: str) -> list[Layer]:
    """A line with marks for each series; marks alone if no window is swept."""
    y = alt.Y(f"{value}:Q", title=title, scale=alt.Scale(zero=True))
    series = frame["series"].unique(maintain_order=True).to_list()
    color, dash, shape = _series(result, series)
    tips = [*axes.point_tooltip(result), axes.tooltip(x)]
    tips += [alt.Tooltip(f"{name}:Q", title=told, format=",.4~g") for name, told in SHOWN.items()]
    base = alt.Chart(frame).encode(x=x, y=y, color=color, opacity=pointer.dimmed(pointer.isolating(color)))
    joined = (
        [base.mark_line(clip=True).encode(order="in_flight:Q", detail="series:N", strokeDash=dash)]
        if _is_swept(result)
        else []
    )
    return [*joined, base.mark_point(size=40, clip=True).encode(tooltip=tips, shape=shape)]


def _series(result: ResultRecords, names: Sequence[str]) -> tuple[Any, Any, Any]:
    """Colour, dash and shape of the series; none for a single one."""
    if len(names) < 2:
        return alt.Undefined, alt.Undefined, alt.Undefined
    said = ", ".join(dict.fromkeys(key_title(key) for key in _others(result))) or "point"
    legend = alt.Legend(symbolOpacity=1)
    color = axes.series_color(names, said, legend)
    if _is_swept(result):
        return color, axes.series_dash(names, said, legend), alt.Undefined
    return color, alt.Undefined, axes.series_shape(names, said, legend)


def _is_swept(result: ResultRecords) -> bool:
    return len(_others(result)) < len(variation(result).keys)


def _rate(result: ResultRecords, frame: pl.DataFrame, x: alt.X) -> list[Layer]:
    """The payload that fits into the bottleneck's rate, if that is constant and the same in all runs: a dashed rule."""
    name = bottleneck(result).name
    known = [capacities(run).get(name) for run in result.runs]
    rates = {capacity.at(0) for capacity in known if capacity and capacity.is_constant}
    if len(rates) != 1 or not all(capacity and capacity.is_constant for capacity in known):
        return []
    rule = pl.DataFrame({"mbit": [rates.pop() / MBIT]})
    return [alt.Chart(rule).mark_rule(style="capacity").encode(y=alt.Y("mbit:Q", title=THROUGHPUT))]


def _subtitle(result: ResultRecords, frame: pl.DataFrame) -> str:
    hidden = frame.filter(pl.col("rtt_ms").is_null())["point"].to_list()
    return sentence(
        f"Dashed: rate of {bottleneck(result).name}." if _rate(result, frame, alt.X("in_flight:Q")) else "",
        f"No median, because most probes were lost: {'; '.join(hidden)}." if hidden else "",
    )


def _description(frame: pl.DataFrame) -> str:
    told = []
    for (series,), rows in frame.group_by("series", maintain_order=True):
        first, last = rows.sort("in_flight").row(0, named=True), rows.sort("in_flight").row(-1, named=True)
        ends = " to ".join(_told(row) for row in ((first, last) if rows.height > 1 else (first,)))
        told.append(f"{series or 'all traffic'}: {ends}")
    return f"Goodput and median round-trip time against packets in flight. {'; '.join(told)}."


def _told(row: dict[str, Any]) -> str:
    delay = "most probes lost" if row["rtt_ms"] is None else f"{row['rtt_ms']:.4g} ms"
    return f"{row['mbit']:.4g} Mbit/s and {delay} with {row['in_flight']:.4g} packets"
