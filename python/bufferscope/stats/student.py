"""The quantile of Student's t distribution that bounds a two-sided confidence interval.

SciPy has it too, but takes longer to import than thirty runs to load. Equation numbers are those of the NIST Digital
Library of Mathematical Functions (https://dlmf.nist.gov/8.17).
"""

import math
from functools import lru_cache
from itertools import count
from statistics import NormalDist

EXACT = 1e-15
"""The relative size of a correction that no longer matters."""


@lru_cache(maxsize=1024)
def quantile(freedom: float, confidence: float) -> float:
    """The t that the distribution's absolute value does not exceed with a probability of `confidence`.

    `freedom` are the degrees of freedom, which Welch's interval does not need to be whole.
    """
    # The density has wider tails than the normal distribution's, so the search starts below the quantile. Beyond 0 the
    # probability of the tails is convex, so Newton's steps lead up to the quantile and never beyond it.
    t = NormalDist().inv_cdf((1 + confidence) / 2)
    while (step := (_tails(t, freedom) - (1 - confidence)) / (2 * _density(t, freedom))) > EXACT * t:
        t += step
    return t


def _density(t: float, freedom: float) -> float:
    """The probability density."""
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _tails(t: float, freedom: float) -> float:
    """The probability of an absolute value above `t`."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function of 0 < x < 1."""
    if x > (a + 1) / (a + b + 2):  # where the fraction of the mirrored function (8.17.4) converges faster
        return 1 - incomplete_beta(b, a, 1 - x)
    front = a * math.log(x) + b * math.log1p(-x) - math.lgamma(a) - math.lgamma(b) + math.lgamma(a + b)
    return math.exp(front) / a * _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction 8.17.22, by Steed's algorithm (DLMF 3.10(iii))."""
    inverse = value = change = 1.0
    for n in count(1):
        m = n // 2
        if n % 2:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        inverse = 1 / (1 + part * inverse)
        change *= inverse - 1
        value += change
        if abs(change) <= EXACT * abs(value):
            break
    return value
