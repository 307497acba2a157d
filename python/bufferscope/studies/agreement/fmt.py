"""Comparisons in words: the same for the terminal, the page and the table of the documentation."""

import math
from dataclasses import dataclass

from bufferscope.base.fmt import NBSP, margin, number, with_unit
from bufferscope.model.metric_definitions import definition
from bufferscope.stats.estimate import Estimate
from bufferscope.studies.agreement.comparing import Agreement, MetricComparison, PointAgreement

CENSORED = "censored"
VERDICTS = {True: "met", False: "exceeded", None: "not judged"}
KINDS = {True: ("reproduced", "✓"), False: ("not-reproduced", "✗"), None: ("not-applicable", "–")}
"""A verdict's CSS class, and a sign beside its words so that the verdict can be read without colour."""
SPREADS = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True)
class MetricComparisonView:
    """One metric on both engines."""

    metric: str
    value: str
    reference: str
    difference: str
    spread: str
    beyond: bool
    """Whether chance can't explain the difference."""
    tolerance: str
    """The tolerance in words; empty without one."""
    verdict: str
    kind: str
    symbol: str


def view(comparison: MetricComparison) -> MetricComparisonView:
    """A comparison in words."""
    known = definition(comparison.metric)
    unit = known.unit if known else ""
    kind, symbol = KINDS[comparison.within_tolerance]
    return MetricComparisonView(
        metric=comparison.metric,
        value=estimate(comparison.value),
        reference=estimate(comparison.reference),
        difference=difference(comparison, unit),
        spread=spread(comparison),
        beyond=comparison.within_spread is False,
        tolerance=comparison.tolerance.words if comparison.tolerance else "",
        verdict=VERDICTS[comparison.within_tolerance] if comparison.tolerance else "",
        kind=kind,
        symbol=symbol,
    )


def title(point: PointAgreement) -> str:
    """A point's swept values; without a sweep the experiment's title."""
    return ", ".join(point.values.values()) or str(point.runs[0].meta["title"])


def counts(agreement: Agreement) -> tuple[tuple[str, str, int], ...]:
    """How many differences are within their tolerance, exceed it, and are not judged: CSS class, words and number."""
    words = {True: "within tolerance", False: "exceed their tolerance", None: "not judged"}
    found = ((KINDS[verdict][0], words[verdict], agreement.count(verdict)) for verdict in (True, False, None))
    return tuple(count for count in found if count[2])


def estimate(value: Estimate) -> str:
    """The mean; with repetitions, also half the width of its 95 % confidence interval.

    The median if losses hide the value of some repetitions.
    """
    if value.censored:
        return CENSORED if math.isinf(value.median) else f"median{NBSP}{number(value.median)}"
    if math.isnan(value.sem):
        return number(value.mean)
    return f"{number(value.mean)}{NBSP}±{NBSP}{margin(value.reach, value.mean)}"


def difference(comparison: MetricComparison, unit: str) -> str:
    """`+1.2 ms (+3.4 %)`; in words if a value is hidden by losses."""
    if math.isnan(comparison.difference):
        return f"both {CENSORED}"
    if math.isinf(comparison.difference):
        return f"one {CENSORED}"
    share = "" if math.isnan(comparison.relative) else f" ({comparison.relative:+.1%})".replace("%", f"{NBSP}%")
    return f"{'+' if comparison.difference > 0 else ''}{with_unit(_rounded(comparison), unit)}{share}"


def spread(comparison: MetricComparison) -> str:
    """Whether chance can explain the difference, and how large a difference it can explain."""
    told = SPREADS[comparison.within_spread]
    return (
        told
        if math.isnan(comparison.reach)
        else f"{told}, ±{NBSP}{margin(comparison.reach, comparison.reference.mean)}"
    )


def _rounded(comparison: MetricComparison) -> float:
    """The difference with three significant digits: more would only show how the repetitions scatter."""
    return float(f"{comparison.difference:.3g}")
