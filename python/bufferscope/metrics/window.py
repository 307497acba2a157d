"""The part of a run that metrics look at: from the warm-up to the duration, both included."""

from dataclasses import dataclass

import polars as pl

from bufferscope.metrics.network import NANOSECONDS
from bufferscope.metrics.records import RunRecords


@dataclass(frozen=True)
class Window:
    """A stretch of a run's time."""

    start_ns: int
    end_ns: int

    @classmethod
    def of(cls, run: RunRecords) -> "Window":
        """The window that the run's scenario asks for."""
        return cls(run.scenario["warmup_ns"], run.scenario["duration_ns"])

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) / NANOSECONDS

    def rows(self, frame: pl.DataFrame, column: str = "t_ns") -> pl.DataFrame:
        """The rows whose time lies in the window."""
        return frame.filter(pl.col(column).is_between(self.start_ns, self.end_ns))


def gained(frame: pl.DataFrame, counter: str, key: str, window: Window) -> pl.DataFrame:
    """How much a cumulative counter grew in the window, for each `key`: a frame `key, counter`.

    A counter that has not been seen yet is 0; one that is no longer sampled keeps its last value.
    """
    at_end = frame.filter(pl.col("t_ns") <= window.end_ns)
    at_start = at_end.filter(pl.col("t_ns") <= window.start_ns)
    first, last = (
        part.group_by(key, maintain_order=True).agg(pl.col(counter).max().cast(pl.Int64)) for part in (at_start, at_end)
    )
    return last.join(first, on=key, how="left", suffix="_before").select(
        key, pl.col(counter) - pl.col(f"{counter}_before").fill_null(0)
    )
