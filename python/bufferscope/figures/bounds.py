"""The rate of the bottleneck in figures of goodput, and the traffic that it bounds: what crosses it that way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, pointer
from bufferscope.figures.source import ResultRecords, bottleneck, duration_s, points
from bufferscope.metrics.capacity import Capacity, capacities
from bufferscope.metrics.goodput import MBIT
from bufferscope.model.network import CARRYING, NANOSECONDS, path, traffic_ends, traffic_named
from bufferscope.model.scenario import Scenario
from bufferscope.store.metadata import sources


@dataclass(frozen=True)
class Bound:
    """The bottleneck's rate, and the traffic that it bounds."""

    port: str
    capacities: Mapping[str, Capacity]
    """The port's rate at each point (by label) in which it has one."""
    crossing: tuple[str, ...]
    """The traffic entries that send their data through the port, at any point."""

    @property
    def is_common(self) -> bool:
        """Whether the rate is the same at all points."""
        first, *others = self.capacities.values()
        return all(each.steps.equals(first.steps) for each in others)

    @property
    def highest_mbit(self) -> float:
        """The highest rate in Mbit/s."""
        return max(axes.span(each.steps["rate_bps"])[1] for each in self.capacities.values()) / MBIT

    def of(self, traffic: pl.DataFrame) -> pl.DataFrame:
        """The rows of the traffic that crosses the port."""
        return traffic.filter(pl.col("traffic").is_in(self.crossing))

    def others(self, traffic: pl.DataFrame) -> list[str]:
        """The names of the traffic that does not cross the port."""
        return [name for name in traffic["traffic"].unique(maintain_order=True) if name not in self.crossing]

    def is_exceeded(self, lines: pl.DataFrame) -> bool:
        """Whether a line of `point, time_s, mbit` exceeds the rate at its point in any bin."""
        highest = lines.group_by("point", "time_s").agg(pl.col("mbit").max()).rows()
        return any(
            mbit * MBIT > self.capacities[point].at(round(time_s * NANOSECONDS))
            for point, time_s, mbit in highest
            if point in self.capacities and mbit is not None
        )


def bound(result: ResultRecords) -> Bound | None:
    """The bottleneck; None of runs that were only observed, and where a point sends nothing through it."""
    if all(sources(run.meta) for run in result.runs):
        return None
    port = bottleneck(result).name
    crossing = [_through(run.scenario, port) for run in result.runs if not sources(run.meta)]
    if not all(crossing):
        return None
    known = {point.label: capacities(point.first) for point in points(result)}
    rates = {label: found[port] for label, found in known.items() if port in found}
    return Bound(port, rates, tuple(dict.fromkeys(name for names in crossing for name in names))) if rates else None


def _through(scenario: Scenario, port: str) -> list[str]:
    """The traffic entries whose data cross a port."""
    return [
        entry["name"]
        for entry in traffic_named(scenario, *CARRYING)
        if any(crossed.name == port for crossed in path(scenario, *traffic_ends(scenario, entry)))
    ]


def layer(known: Bound, result: ResultRecords, x: alt.X, y: alt.Y) -> alt.Chart:
    """The rate as a step line to the end of the time axis; one for each point, in its colour, if the rates differ."""
    if known.is_common:
        steps = _steps(next(iter(known.capacities.values())), result)
        line: alt.Chart = alt.Chart(steps).mark_line(style="capacity", interpolate="step-after", clip=True)
        return line.encode(x=x, y=y)
    rows = [_steps(each, result).with_columns(point=pl.lit(label)) for label, each in known.capacities.items()]
    color = axes.point_color(result)
    drawn: alt.Chart = alt.Chart(pl.concat(rows)).mark_line(style="bound", interpolate="step-after", clip=True)
    return drawn.encode(x=x, y=y, color=color, opacity=pointer.dimmed(pointer.isolating(color), 0.7))


def _steps(capacity: Capacity, result: ResultRecords) -> pl.DataFrame:
    recorded = capacity.steps.select(time_s=pl.col("t_ns") / NANOSECONDS, mbit=pl.col("rate_bps") / MBIT)
    return pl.concat([recorded, recorded.tail(1).with_columns(time_s=pl.lit(duration_s(result)))])
