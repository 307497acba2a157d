"""Expectations as the page shows them: what a document says beside what was measured."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bufferscope.metrics import definition
from bufferscope.report.words import band, number, with_unit

if TYPE_CHECKING:
    from bufferscope.expectations import Evaluated

SYMBOLS = {
    "reproduced": "✓",
    "differs-as-explained": "≠",
    "differs-cause-not-shown": "≉",
    "not reproduced": "✗",
    "not applicable": "–",
}
"""A sign beside each verdict's words, so that it does not depend on colour."""
GAUGE = 120
"""Width of the gauge in pixels."""


@dataclass(frozen=True)
class Gauge:
    """A measurement beside its band on a line, in pixels; what has no end reaches the edge."""

    start: float
    width: float
    mark: float | None


@dataclass(frozen=True)
class VerdictView:
    """One expectation."""

    says: str
    measure: str
    band: str
    measured: str
    verdict: str
    symbol: str
    kind: str
    """The verdict as a CSS class."""
    reason: str
    shown_by: str
    """The run that shows the reason, if one does."""
    gauge: Gauge | None


def view(evaluated: "Evaluated", tells_engine: bool = False) -> VerdictView:
    """An evaluated expectation in words, its engine's name among them if it has to be told from others."""
    expectation = evaluated.expectation
    verdict = evaluated.verdict.value
    known = definition(expectation.metric)
    unit = "×" if expectation.relative_to else known.unit if known else ""
    low, high = expectation.band
    return VerdictView(
        says=expectation.says,
        measure=_measure(evaluated) + (f" on {evaluated.engine}" if tells_engine else ""),
        band=band(low, high, unit),
        measured=_measured(evaluated.measured, unit),
        verdict=evaluated.verdict.words,
        symbol=SYMBOLS[verdict],
        kind=verdict.replace(" ", "-"),
        reason=evaluated.reason or "",
        shown_by=evaluated.shown_by or "",
        gauge=gauge(low, high, evaluated.measured),
    )


def _measure(evaluated: "Evaluated") -> str:
    expectation = evaluated.expectation
    point = ", ".join(evaluated.point.values())
    if expectation.relative_to:
        return f"{expectation.metric}: {point} over {', '.join(expectation.relative_to.values())}"
    return f"{expectation.metric} at {point}" if point else expectation.metric


def _measured(value: float | None, unit: str) -> str:
    if value is None:
        return "not measured"
    if math.isinf(value):
        return "hidden by what was lost"
    return with_unit(value, unit) if unit else number(value)


def gauge(low: float, high: float, measured: float | None) -> Gauge | None:
    """Where the band and the measurement lie on a line that shows both; None for a band without ends."""
    ends = [end for end in (low, high) if math.isfinite(end)]
    if not ends:
        return None
    shown = [*ends, measured] if measured is not None and math.isfinite(measured) else ends
    least, most = min(shown), max(shown)
    margin = (most - least) * 0.3 or abs(most) * 0.5 or 1
    scale = GAUGE / (most - least + 2 * margin)

    def at(value: float) -> float:
        return round(min(max((value - least + margin) * scale, 0), GAUGE), 1)

    start, end = at(low), at(high)
    mark = None if measured is None or math.isnan(measured) else at(measured)
    return Gauge(start, round(end - start, 1), mark)
