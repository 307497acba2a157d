"""The part of a run that metrics measure: the time under load of a test that waits, otherwise all after the warm-up.

Flent's tests (`rrul` and the others) send probes before and after their load, and so do files of Flent. Goodput over
that idle time would be too low, and percentiles of round trips would be a mixture of two states. So the window of such
a run begins with the load, if that is later than the warm-up, and ends with it. `idle.*` are the metrics of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.records import RunRecords
from bufferscope.model.directions import SIDES
from bufferscope.model.network import CARRYING, NANOSECONDS, UNKNOWN, traffic_named
from bufferscope.model.scenario import Scenario

if TYPE_CHECKING:
    from bufferscope.metrics.batch import Batch

ENDLESS = 2**62
"""Later than any time of a run."""


@dataclass(frozen=True)
class Window:
    """An interval of a run's time."""

    start_ns: int
    end_ns: int

    @classmethod
    def of(cls, run: RunRecords) -> Window:
        """The window that the run's scenario defines."""
        return window(run.scenario)

    @property
    def seconds(self) -> float:
        """The window's length."""
        return (self.end_ns - self.start_ns) / NANOSECONDS

    def rows(self, frame: pl.DataFrame, column: str = "t_ns") -> pl.DataFrame:
        """The rows whose time lies in the window."""
        return frame.filter(pl.col(column).is_between(self.start_ns, self.end_ns))


def window(scenario: Scenario) -> Window:
    """The time that metrics measure: from the warm-up to the duration, or the part of it under load in a test."""
    start_ns, end_ns = scenario["warmup_ns"], scenario["duration_ns"]
    loaded = test_load(scenario)
    if loaded is None or loaded.end_ns <= start_ns:
        return Window(start_ns, end_ns)
    return Window(max(start_ns, loaded.start_ns), min(end_ns, loaded.end_ns))


def described(scenario: Scenario) -> str:
    """The time that metrics measure, in words: `under load, from 5 s to 25 s`."""
    found = window(scenario)
    under = "under load, " if test_load(scenario) else ""
    return f"{under}from {found.start_ns / NANOSECONDS:.6g} s to {found.end_ns / NANOSECONDS:.6g} s"


def test_load(scenario: Scenario) -> Window | None:
    """From the first to the last byte that a scenario with a load test may send; None for other scenarios.

    The parts of a test are named after it, with a dot; so are the flows of an imported test.
    """
    carrying = traffic_named(scenario, *CARRYING)
    if not any("." in entry["name"] for entry in carrying):
        return None
    return Window(min(entry["start_ns"] for entry in carrying), max(entry["stop_ns"] for entry in carrying))


def idle_times(scenario: Scenario) -> list[Window]:
    """The times, both ends included, at which a run with known load has none: before it and after it.

    In a run that another program observed without its load, that is the time before the warm-up ends, and the time
    after the duration, which then ends with the load.
    """
    loaded, ends = test_load(scenario), scenario["duration_ns"]
    if loaded is None and _is_unknown(scenario):
        loaded, ends = Window(scenario["warmup_ns"], ends), ENDLESS
    elif loaded is None:
        loaded = Window(0, ends)
    parts = [Window(0, loaded.start_ns - 1), Window(loaded.end_ns + 1, ends)]
    return [part for part in parts if part.end_ns >= part.start_ns]


def _is_unknown(scenario: Scenario) -> bool:
    """Whether the queues are not known, because another program observed the run."""
    return all(link[side]["queue"]["qdisc"] == UNKNOWN for link in scenario["links"] for side in SIDES)


def gained(frame: pl.LazyFrame, batch: Batch, *counters: str) -> pl.LazyFrame:
    """How much the cumulative counters of each flow grew in its run's window: `run, flow` and the counters.

    A counter is 0 before its first sample, and keeps its last value after its last sample.
    """
    grown = [
        pl.col(counter).max() - pl.col(counter).filter(pl.col("t_ns") <= pl.col("start_ns")).max().fill_null(0)
        for counter in counters
    ]
    until_end = frame.join(batch.windows, on="run").filter(pl.col("t_ns") <= pl.col("end_ns"))
    return until_end.group_by("run", "flow").agg(grown)
