"""Whether two engines differ by more than the scatter of their repetitions.

Welch's interval (B. L. Welch, "The generalization of 'Student's' problem", Biometrika 1947): the two engines may have
different numbers of repetitions and different variances. If the engines differ by nothing but chance, the difference of
their means lies within the interval 95 times in 100. So even of twenty metrics that agree perfectly, about one lies
outside.
"""

import math

from bufferscope.stats import rank_sum
from bufferscope.stats.estimate import CONFIDENCE, Estimate, student_t

LEAST_REPETITIONS = 2
"""Fewer repetitions say nothing about chance."""


def reach(first: Estimate, second: Estimate) -> float:
    """How far two means may lie apart by chance: half the width of the difference's 95 % confidence interval.

    NaN if either sample has fewer than two repetitions or a censored one: then nothing is known about chance. 0 if the
    repetitions of each are all equal, as they are when nothing is random.
    """
    error = math.hypot(first.sem, second.sem)
    if not error or math.isnan(error):
        return error
    # Welch's degrees of freedom, from the share of each sample in the variance of the difference.
    shares = ((each.sem / error) ** 2 / math.sqrt(each.n - 1) for each in (first, second))
    return student_t(1 / sum(share**2 for share in shares)) * error


def may_be_alike(first: Estimate, second: Estimate) -> bool | None:
    """Whether chance can explain how the repetitions of two samples are ordered by size; a censored one is the largest.

    Mann and Whitney's test, which fewer than four repetitions of either never fail. None if either has fewer than two.
    """
    if min(first.n, second.n) < LEAST_REPETITIONS:
        return None
    return rank_sum.p_value(first.values, second.values) >= 1 - CONFIDENCE
