"""Tolerances: how close two engines must be so that either can replace the other.

The tolerances say which differences matter to a reader of results. They don't say which differences chance explains:
the spread of the repetitions does (`spread.py`). Each tolerance has a floor. A difference below it does not matter,
even if it is a large share of a small value.
"""

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Tolerance:
    """How far two engines' values of a metric, or of several alike, may lie apart."""

    metric: str
    """The metric's name; `*` stands for any characters."""
    factor: float
    """The larger value is at most this many times the smaller one ..."""
    floor: float
    """... or the two differ by at most this, in the metric's unit."""
    words: str
    """The tolerance in words."""

    def covers(self, metric: str) -> bool:
        """Whether this is the tolerance of a metric."""
        return fnmatchcase(metric, self.metric)

    def is_met(self, value: float, reference: float) -> bool | None:
        """Whether two values are close enough; None if both are hidden by losses."""
        if not (math.isfinite(value) and math.isfinite(reference)):
            return None if value == reference else False
        if abs(value - reference) <= self.floor:
            return True
        low, high = sorted((value, reference))
        return low > 0 and high <= self.factor * low


TOLERANCES: tuple[Tolerance, ...] = (
    Tolerance("rtt.p50_ms", 1.05, 0.5, "within 5 % or 0.5 ms"),
    Tolerance("rtt.p95_ms", 1.05, 0.5, "within 5 % or 0.5 ms"),
    Tolerance("goodput.total_mbit", 1.01, 0.01, "within 1 % or 0.01 Mbit/s"),
    Tolerance("drops.total", 1.15, 5, "within 15 % or 5 packets"),
    Tolerance("marks.total", 1.15, 5, "within 15 % or 5 packets"),
    Tolerance("retransmits.total", 1.15, 5, "within 15 % or 5 segments"),
    Tolerance("share.*", 1, 5, "within 5 points"),
)
"""Where the floors come from: 0.5 ms is half the time of a full packet at 10 Mbit/s, and far below what people
notice. 5 packets is how far chance alone moves the count of a few losses (a count of n scatters by about its square
root). 0.01 Mbit/s is less than a packet per second. Five points of a share are a twentieth of the goodput."""


def tolerance_of(metric: str) -> Tolerance | None:
    """The tolerance of a metric; None if it has no tolerance."""
    return next((tolerance for tolerance in TOLERANCES if tolerance.covers(metric)), None)
