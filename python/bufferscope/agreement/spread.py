"""Whether two means differ by more than the scatter of their repetitions.

Welch's interval (B. L. Welch, "The generalization of 'Student's' problem", Biometrika 1947): the two engines may have
different numbers of repetitions and different variances. If the engines differ by nothing but chance, the difference of
their means lies within the interval 95 times in 100. So even of twenty metrics that agree perfectly, about one lies
outside.
"""

import warnings

from bufferscope.metrics.statistics import CONFIDENCE, Estimate


def reach(first: Estimate, second: Estimate) -> float:
    """How far two means may lie apart by chance: half the width of the difference's 95 % confidence interval.

    NaN if either side has fewer than two repetitions or a censored one: then nothing is known about chance. 0 if the
    repetitions of each side are all equal, as they are when nothing is random.
    """
    from scipy import stats

    with warnings.catch_warnings():
        # SciPy warns of lost precision if the repetitions of one side are equal, and of too few repetitions.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.ttest_ind(first.values, second.values, equal_var=False).confidence_interval(CONFIDENCE)
    return float(found.high - found.low) / 2
