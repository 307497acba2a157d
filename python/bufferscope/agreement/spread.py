"""Whether two means differ by more than the scatter of their repetitions.

Welch's interval (B. L. Welch, "The generalization of 'Student's' problem", Biometrika 1947): the two engines may have
different numbers of repetitions and different variances. If the engines differ by nothing but chance, the difference of
their means lies within the interval 95 times in 100. So even of twenty metrics that agree perfectly, about one lies
outside.
"""

import math

from scipy import special

from bufferscope.metrics.statistics import CONFIDENCE, Estimate


def reach(first: Estimate, second: Estimate) -> float:
    """How far two means may lie apart by chance: half the width of the difference's 95 % confidence interval.

    NaN if either side has fewer than two repetitions or a censored one: then nothing is known about chance. 0 if the
    repetitions of each side are all equal, as they are when nothing is random.
    """
    variances = [estimate.sem**2 for estimate in (first, second)]
    if any(math.isnan(variance) for variance in variances):
        return math.nan
    total = sum(variances)
    if total == 0:
        return 0.0
    # Divide by the total before squaring: the squares of tiny variances would underflow.
    shares = [variance / total for variance in variances]
    freedom = 1 / sum(share**2 / (estimate.n - 1) for share, estimate in zip(shares, (first, second), strict=True))
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
