"""The part of a run that metrics measure: from the warm-up to the duration, both included."""

from dataclasses import dataclass

import polars as pl

from bufferscope.metrics.network import NANOSECONDS
from bufferscope.metrics.records import RunRecords


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


def gained(frame: pl.DataFrame, counter: str, key: str, window: Window) -> pl.DataFrame:
    """How much a cumulative counter grew in the window, for each `key`: a frame `key, counter`.

    A counter is 0 before its first sample, and keeps its last value after its last sample.
    """
    at_end = pl.col(counter).max().cast(pl.Int64)
    at_start = pl.col(counter).filter(pl.col("t_ns") <= window.start_ns).max().cast(pl.Int64)
    return (
        frame.lazy()
        .filter(pl.col("t_ns") <= window.end_ns)
        .group_by(key, maintain_order=True)
        .agg(at_end - at_start.fill_null(0))
        .collect(engine="in-memory")
    )
