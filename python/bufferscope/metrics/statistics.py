"""Statistics for the metrics: percentiles with lost samples or weights, and confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

CONFIDENCE = 0.95

Samples = npt.NDArray[np.float64]


def percentile(values: Samples, percent: float) -> float:
    """The percentile of `values` by linear interpolation between order statistics (NumPy's and polars' "linear").

    A lost sample is +inf, longer than any other. The result is +inf (censored) if a lost sample contributes to it.
    """
    return weighted_percentile(values, np.ones(len(values), dtype=np.int64), percent)


def weighted_percentile(values: Samples, weights: npt.NDArray[np.int64], percent: float) -> float:
    """The percentile of the sample in which each of `values` occurs as often as its weight says."""
    if not 0 <= percent <= 100:
        raise ValueError(f"percentile {percent} is outside 0..100")
    total = int(weights.sum())
    if total == 0:
        raise ValueError("percentile of an empty sample")
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    rank = (total - 1) * percent / 100
    below, above = (
        float(values[order][np.searchsorted(ends, k, side="right")]) for k in (math.floor(rank), math.ceil(rank))
    )
    share = rank - math.floor(rank)
    if math.isinf(above):
        return above if share > 0 or math.isinf(below) else below
    return below + (above - below) * share


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
    reach = float(special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * sem
    return Estimate(mean, sem, tuple(values), mean - reach, mean + reach)
