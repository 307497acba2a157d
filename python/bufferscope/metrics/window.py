"""The part of a run that metrics measure: from the warm-up to the duration, both included."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from bufferscope.metrics.network import NANOSECONDS
from bufferscope.metrics.records import RunRecords

if TYPE_CHECKING:
    from bufferscope.metrics.batch import Batch


@dataclass(frozen=True)
class Window:
    """An interval of a run's time."""

    start_ns: int
    end_ns: int

    @classmethod
    def of(cls, run: RunRecords) -> "Window":
        """The window that the run's scenario defines."""
        return cls(run.scenario["warmup_ns"], run.scenario["duration_ns"])

    @property
    def seconds(self) -> float:
        """The window's length."""
        return (self.end_ns - self.start_ns) / NANOSECONDS

    def rows(self, frame: pl.DataFrame, column: str = "t_ns") -> pl.DataFrame:
        """The rows whose time lies in the window."""
        return frame.filter(pl.col(column).is_between(self.start_ns, self.end_ns))


def gained(frame: pl.LazyFrame, batch: "Batch", *counters: str) -> pl.LazyFrame:
    """How much the cumulative counters of each flow grew in its run's window: `run, flow` and the counters.

    A counter is 0 before its first sample, and keeps its last value after its last sample.
    """
    grown = [
        pl.col(counter).max() - pl.col(counter).filter(pl.col("t_ns") <= pl.col("start_ns")).max().fill_null(0)
        for counter in counters
    ]
    until_end = frame.join(batch.windows, on="run").filter(pl.col("t_ns") <= pl.col("end_ns"))
    return until_end.group_by("run", "flow").agg(grown)
