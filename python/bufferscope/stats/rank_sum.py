"""Mann and Whitney's test of whether one of two samples tends to have larger values ("On a test of whether one of two
random variables is stochastically larger than the other", Annals of Mathematical Statistics 1947).
"""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist

MOST_EXACT = 8
"""The largest size of the smaller sample of which the exact distribution is used, as SciPy does; Mann and Whitney's own
tables end there, because the normal approximation is then close."""


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The probability of an order at least as one-sided if both samples come from the same distribution.

    It is two-sided. If values are equal, or both samples are large, it is the normal approximation, corrected for
    ties and for continuity.
    """
    wins = sum((one > other) + (one == other) / 2 for one in first for other in second)
    pairs = len(first) * len(second)
    extreme = max(wins, pairs - wins)
    ties = Counter((*first, *second))
    if min(len(first), len(second)) <= MOST_EXACT and max(ties.values()) == 1:
        tail = _exact_tail(len(first), len(second), int(extreme))
    else:
        tail = _normal_tail(pairs, len(first) + len(second), extreme, ties)
    return min(1.0, 2 * tail)


def _exact_tail(first: int, second: int, extreme: int) -> float:
    """The probability of at least so many wins.

    The number of orders with k wins is the coefficient of q^k in the Gaussian binomial coefficient, which is the
    product of (1 - q^(second + i)) / (1 - q^i) for i from 1 to `first`.
    """
    pairs = first * second
    orders = [1] + [0] * pairs
    for i in range(1, first + 1):
        for wins in range(pairs, second + i - 1, -1):
            orders[wins] -= orders[wins - second - i]
        for wins in range(i, pairs + 1):
            orders[wins] += orders[wins - i]
    return sum(orders[extreme:]) / math.comb(first + second, first)


def _normal_tail(pairs: int, values: int, extreme: float, ties: Counter[float]) -> float:
    """The same of the normal distribution with the mean and the variance of the wins."""
    tied = sum(count**3 - count for count in ties.values()) / (values * (values - 1))
    deviation = math.sqrt(pairs / 12 * (values + 1 - tied))
    return NormalDist().cdf((pairs / 2 + 0.5 - extreme) / deviation) if deviation else 1.0
