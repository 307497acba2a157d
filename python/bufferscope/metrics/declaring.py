"""How metrics are declared: what they mean, and beside it the query that computes them.

Reading declarations loads no library for data, so it is cheap to ask which metrics there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bufferscope.model.metric_definitions import Definition, parts

if TYPE_CHECKING:
    import polars as pl

    from bufferscope.metrics.batch import Batch

INSTANCES = ("port", "traffic")
"""The columns of frames that distinguish the metrics of a run."""


@dataclass(frozen=True, eq=False)
class Metric(Definition):
    """One metric, or one family of metrics that differ by port, traffic or percentile, with its value."""

    value: Callable[..., Any]
    """Makes the value (`Measured`) from the columns of the query; if the name has `<N>`, for a percentile."""
    percentiles: Sequence[int] = ()
    """The percentiles that are always computed, if the name has `<N>`; any other can be requested."""
    heading: str | Mapping[int, str] = ""
    """The head of its column in a table of few metrics, or one for each percentile; by default its name.

    It may have the parts of the name, as in `<traffic> p<N> (s)`.
    """

    def headed(self, name: str) -> str:
        """The head of a column for one of the names that the metric covers."""
        named = parts(self, name) or {}
        text = self.heading if isinstance(self.heading, str) else self.heading.get(int(named["N"]), "")
        for part, found in named.items():
            text = text.replace(f"<{part}>", found)
        return text or name

    def percents(self, only: int | None = None) -> Sequence[int]:
        """The percentiles to compute: the usual ones, or only this one."""
        if "<N>" not in self.name:
            return ()
        return self.percentiles if only is None else [only]

    def values(self, only: int | None = None) -> dict[str, Any]:
        """The values by name."""
        if "<N>" not in self.name:
            return {self.name: self.value()}
        return {self.name.replace("<N>", str(percent)): self.value(percent) for percent in self.percents(only)}


@dataclass(frozen=True, eq=False)
class Query(ABC):
    """Metrics that are computed together, for all runs of a batch."""

    metrics: Sequence[Metric]
    """All of them differ by port, or all by traffic, or none does."""
    reads: Mapping[str, Sequence[str]]
    """The tables of the records that it reads, with the columns."""

    @abstractmethod
    def measure(self, batch: Batch, percent: int | None = None) -> pl.LazyFrame | None:
        """The metrics in the form of `long`; of percentiles the usual ones, or only this one.

        None if no run of the batch has any.
        """


@dataclass(frozen=True, eq=False)
class FrameQuery(Query):
    """Metrics whose values are made of the columns of one frame."""

    frame: Callable[..., pl.LazyFrame | None]
    """Rows with `run`, with `port` or `traffic` if the metrics differ by it, and with what the values are made of.

    Its arguments are the batch and, if it computes percentiles itself, which ones.
    """
    is_given_percents: bool = False

    def measure(self, batch: Batch, percent: int | None = None) -> pl.LazyFrame | None:
        """As for every query; in the order of the frame's rows."""
        from bufferscope.metrics.long import long

        if self.is_given_percents:
            percents = [each for metric in self.metrics for each in metric.percents(percent)]
            rows = self.frame(batch, percents)
        else:
            rows = batch.once(self.frame)
        if rows is None:
            return None
        values = {name: value for metric in self.metrics for name, value in metric.values(percent).items()}
        instance = next((part for part in INSTANCES if f"<{part}>" in self.metrics[0].name), None)
        return long(rows, {name.replace(f"<{instance}>", "{}"): value for name, value in values.items()}, instance)


def query(
    *metrics: Metric, reads: Mapping[str, Sequence[str]], is_given_percents: bool = False
) -> Callable[[Callable[..., pl.LazyFrame | None]], FrameQuery]:
    """Declare metrics; the decorated function makes the frame from whose columns their values are computed."""
    return lambda frame: FrameQuery(metrics, reads, frame, is_given_percents)
