"""Values of metrics, which may be censored, and the errors of those that a run cannot give."""

import math
from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from bufferscope.base.names import closest
from bufferscope.model.metric_names import PERCENTILE


class MetricError(LookupError):
    """A run cannot give this metric."""


class UnknownMetricError(MetricError):
    """No metric has this name."""


class NoSuchMetricError(UnknownMetricError, KeyError):
    """A run has no metric of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotMeasuredError(MetricError):
    """The metric exists, but this run has no records to compute it from."""


@dataclass(frozen=True)
class Value:
    """A metric's value: a number, or censored: known only to exceed everything that was measured."""

    number: float
    """The number in the metric's unit; +inf when censored."""

    @property
    def censored(self) -> bool:
        """Whether lost probes or unfinished transfers hide the number."""
        return math.isinf(self.number)

    def __float__(self) -> float:
        return self.number

    def __str__(self) -> str:
        return "censored" if self.censored else f"{self.number:.6g}"


class Metrics(Mapping[str, float]):
    """All metrics of a run by name; a censored one is +inf and named in `censored`."""

    __slots__ = ("_indices", "_values")

    def __init__(self, values: Mapping[str, float]) -> None:
        # The names are shared among runs that have the same ones, because a result may have 100,000 runs.
        self._indices = _indices(tuple(values))
        self._values = array("d", values.values())

    @property
    def censored(self) -> frozenset[str]:
        """The names of the censored metrics."""
        return frozenset(name for name, value in self.items() if math.isinf(value))

    def __getitem__(self, name: str) -> float:
        try:
            return self._values[self._indices[name]]
        except KeyError:
            raise NoSuchMetricError(_nearest(name, self._indices)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    def __repr__(self) -> str:
        return f"Metrics({dict(self)!r})"


@lru_cache(maxsize=256)
def _indices(names: tuple[str, ...]) -> Mapping[str, int]:
    """The index of each name's value."""
    return {name: index for index, name in enumerate(names)}


def _nearest(name: str, known: Collection[str]) -> str:
    """The message that no such metric was computed, with the name that may have been meant."""
    other = "; bufferscope.metrics.metric(run, name) gives any percentile" if PERCENTILE.search(name) else ""
    return f"{name}: this run has no metric of this name{closest(name, known)}{other}"
