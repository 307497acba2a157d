"""Whether two means differ by more than their repetitions scatter.

Welch's interval (B. L. Welch, "The generalization of 'Student's' problem", Biometrika 1947): repetitions of the two
engines need neither the same number nor the same variance. If nothing but chance parts the engines, the difference of
their means lies within it 95 times in 100. So of twenty metrics that agree perfectly, one lies beyond it all the same.
"""

import math

from scipy import special

from bufferscope.metrics.statistics import CONFIDENCE, Estimate


def reach(first: Estimate, second: Estimate) -> float:
    """How far two means may lie apart by chance: half the width of the difference's 95 % confidence interval.

    NaN with fewer than two repetitions on either side, or where one is censored: nothing is known about chance then.
    0 where no repetition differs from another, as when nothing is random.
    """
    variances = [estimate.sem**2 for estimate in (first, second)]
    if any(math.isnan(variance) for variance in variances):
        return math.nan
    total = sum(variances)
    if total == 0:
        return 0.0
    # Shares of the total first: squares of tiny variances would vanish.
    shares = [variance / total for variance in variances]
    freedom = 1 / sum(share**2 / (estimate.n - 1) for share, estimate in zip(shares, (first, second), strict=True))
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
