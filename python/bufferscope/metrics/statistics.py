"""Statistics for the metrics: percentiles with lost samples or weights, and confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import special

CONFIDENCE = 0.95

Samples = npt.NDArray[np.float64]


def percentile(values: Samples, percent: float) -> float:
    """The percentile of `values` by linear interpolation between order statistics (NumPy's and polars' "linear").

    A lost sample is +inf, longer than any other. The result is +inf (censored) if a lost sample contributes to it.
    """
    if not len(values):
        raise ValueError("percentile of an empty sample")
    ordered = pl.Series([np.sort(values).tolist()], dtype=pl.List(pl.Float64))
    return float(pl.select(percentile_of(pl.lit(ordered), percent)).item())


def percentile_of(ordered: pl.Expr, percent: float, unit: float = 1) -> pl.Expr:
    """The same of lists, in this unit; null for an empty list.

    The lists are in ascending order, with nulls, which stand for lost samples, at the end.
    """
    rank = _rank(ordered.list.len(), percent)
    below, above = (ordered.list.get(place, null_on_oob=True) / unit for place in _places(rank))
    return pl.when(ordered.list.len() > 0).then(_between(below, above, rank))


def weighted_percentile_of(value: str, weight: str, percent: float, unit: float = 1) -> pl.Expr:
    """The percentile of a group's sample in which each `value` occurs as often as its positive `weight` says.

    The rows of the group must be in ascending order of `value`; none may be null.
    """
    rank = _rank(pl.col(weight).sum(), percent)
    ends = pl.col(weight).cum_sum()
    below, above = (pl.col(value).get((ends <= place).sum()) / unit for place in _places(rank))
    return _between(below, above, rank)


def _rank(size: pl.Expr, percent: float) -> pl.Expr:
    """The rank of a percentile among so many samples, from 0; it may lie between two of them."""
    if not 0 <= percent <= 100:
        raise ValueError(f"percentile {percent} is outside 0..100")
    return (size.cast(pl.Int64) - 1) * percent / 100


def _places(rank: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The order statistics around a rank."""
    return rank.floor().cast(pl.Int64), rank.ceil().cast(pl.Int64)


def _between(below: pl.Expr, above: pl.Expr, rank: pl.Expr) -> pl.Expr:
    """The value at a rank between two order statistics; a lost sample, which is null or +inf, hides it."""
    low, high = (value.fill_null(math.inf) for value in (below, above))
    share = rank - rank.floor()
    hidden = pl.when((share > 0) | low.is_infinite()).then(math.inf).otherwise(low)
    return pl.when(high.is_infinite()).then(hidden).otherwise(low + (high - low) * share)


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
    n: int
    """Number of repetitions in which the metric was measured."""
    low: float
    """Lower end of the 95 % confidence interval (Student's t, n - 1 degrees of freedom); NaN if `sem` is."""
    high: float
    """Upper end of that interval."""

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
        return Estimate(mean, math.nan, n, math.nan, math.nan)
    sem = float(np.std(values, ddof=1)) / math.sqrt(n)
    reach = float(special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * sem
    return Estimate(mean, sem, n, mean - reach, mean + reach)
