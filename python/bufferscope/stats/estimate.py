"""Statistics for the metrics: percentiles with lost samples or weights, and confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.stats import student

if TYPE_CHECKING:
    import numpy.typing as npt

CONFIDENCE = 0.95

Samples: TypeAlias = "npt.NDArray[np.float64]"


def percentile(values: Samples, percent: float) -> float:
    """The percentile of `values` by linear interpolation between order statistics (NumPy's and polars' "linear").

    A lost sample is +inf, longer than any other. The result is +inf (censored) if a lost sample contributes to it.
    """
    if not len(values):
        raise ValueError("percentile of an empty sample")
    ordered = [None if math.isinf(value) else value for value in np.sort(values).tolist()]
    frame = pl.DataFrame({"ordered": [ordered]}, schema={"ordered": pl.List(pl.Float64)})
    return float(frame.select(percentile_of(pl.col("ordered"), percent)).item()) / HUNDREDTHS


HUNDREDTHS = 100
"""The number to divide the results of the following functions by: they are whole if the values and `percent` are."""


def percentile_of(ordered: pl.Expr, percent: float) -> pl.Expr:
    """The percentile of lists, in hundredths of their values' unit; null for an empty list.

    The lists are in ascending order, with nulls (lost samples) at the end.
    """
    size = ordered.list.len()
    low, share = _rank(size, percent)
    below, above = (ordered.list.get(index, null_on_oob=True) for index in (low, low + 1))
    return pl.when(size > 0).then(_between(below, above, share))


def weighted_percentile_of(value: str, weight: str, percent: float) -> pl.Expr:
    """The same for a group's sample, in which each `value` occurs `weight` times (a positive number).

    The rows of the group must be in ascending order of `value`; none may be null.
    """
    low, share = _rank(pl.col(weight).sum(), percent)
    ends = pl.col(weight).cum_sum()
    below, above = (pl.col(value).get((ends <= index).sum(), null_on_oob=True) for index in (low, low + 1))
    return _between(below, above, share)


def _rank(size: pl.Expr, percent: float) -> tuple[pl.Expr, pl.Expr]:
    """The rank of a percentile among this many samples: the rank of the sample below it, from 0, and hundredths."""
    if not 0 <= percent <= 100:
        raise ValueError(f"percentile {percent} is outside 0..100")
    rank = (size.cast(pl.Int64) - 1) * percent
    low = (rank // HUNDREDTHS).cast(pl.Int64)
    return low, rank - low * HUNDREDTHS


def _between(below: pl.Expr, above: pl.Expr, share: pl.Expr) -> pl.Expr:
    """The value between two order statistics; infinite if a lost sample has a weight in it."""
    hidden = below.is_null() | ((share > 0) & above.is_null())
    value = below * HUNDREDTHS + pl.when(share > 0).then((above - below) * share).otherwise(0)
    return pl.when(hidden).then(math.inf).otherwise(value.cast(pl.Float64))


def jain_index(shares: Sequence[float]) -> float:
    """Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything."""
    squares = sum(x * x for x in shares)
    return math.nan if squares == 0 else sum(shares) ** 2 / (len(shares) * squares)


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over repetitions, and how well it is known."""

    mean: float
    """Arithmetic mean; +inf if any repetition is censored."""
    sem: float
    """Standard error of the mean; NaN with fewer than two repetitions or a censored one."""
    values: tuple[float, ...]
    """The metric in each repetition in which it was measured."""
    low: float
    """Lower end of the 95 % confidence interval (Student's t, n - 1 degrees of freedom); NaN if `sem` is."""
    high: float
    """Upper end of that interval."""

    @property
    def reach(self) -> float:
        """Half the width of that interval; NaN if `sem` is."""
        return (self.high - self.low) / 2

    @property
    def median(self) -> float:
        """The median of the repetitions; +inf if half of them are censored."""
        return median(self.values)

    @property
    def n(self) -> int:
        """Number of repetitions in which the metric was measured."""
        return len(self.values)

    @property
    def censored(self) -> bool:
        """Whether a repetition's value is known only to exceed everything that was measured."""
        return math.isinf(self.mean)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of repetitions with its standard error and confidence interval."""
    if not values:
        raise ValueError("estimate of no repetitions")
    n = len(values)
    mean = sum(values) / n
    if n < 2 or not math.isfinite(mean):
        return Estimate(mean, math.nan, tuple(values), math.nan, math.nan)
    sem = float(np.std(values, ddof=1)) / math.sqrt(n)
    reach = student_t(n - 1) * sem
    return Estimate(mean, sem, tuple(values), mean - reach, mean + reach)


def student_t(freedom: float) -> float:
    """The quantile of Student's t distribution that bounds a two-sided interval of 95 %."""
    return student.quantile(freedom, CONFIDENCE)
