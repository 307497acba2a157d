"""Expectations as the page shows them: what a document says beside what was measured."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bufferscope.analysis.claims import DocumentStatement, in_words, statements
from bufferscope.base.fmt import NBSP, band, margin, number, with_unit
from bufferscope.metrics import definition
from bufferscope.results.verdicts import Verdict

if TYPE_CHECKING:
    from bufferscope.results.verdicts import ExpectationResult

SYMBOLS = {
    Verdict.REPRODUCED: "✓",
    Verdict.EXPLAINED: "≠",
    Verdict.NOT_SHOWN: "≉",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.NOT_APPLICABLE: "–",
}
"""A sign beside each verdict's words, so that the verdict can be read without colour; the best verdict comes first."""
GAUGE = 120
"""Width of the gauge in pixels."""


@dataclass(frozen=True)
class Gauge:
    """A measurement and its band on a line, in pixels; a band without an end reaches the edge."""

    start: float
    width: float
    mark: float | None
    reach: tuple[float, float] | None
    """The ends of the measurement's confidence interval."""


@dataclass(frozen=True)
class VerdictView:
    """One expectation, as one engine measures it."""

    anchor: str
    says: str
    figure: str
    """Where the document says it; empty if the file does not say."""
    measure: str
    band: str
    measured: str
    has_interval: bool
    """Whether `measured` has a confidence interval."""
    verdict: str
    symbol: str
    kind: str
    """The verdict as a CSS class."""
    shown_by: str
    """The point that shows the cause of a difference; empty without one."""
    why: str
    """The anchor of the verdict's reason; empty without a reason."""
    gauge: Gauge | None
    apart: tuple[str, ...] = ()
    """The repetitions in which flows share a flow queue, each in words."""


@dataclass(frozen=True)
class Count:
    """How many expectations got a verdict."""

    kind: str
    symbol: str
    words: str
    number: int


@dataclass(frozen=True)
class Row:
    """A statement of a document."""

    first: VerdictView
    """What all engines have in common."""
    views: tuple[VerdictView | None, ...]
    """For each of the group's engines, its measurement; None if it has none."""

    @property
    def verdicts(self) -> list[VerdictView]:
        """The measurements that there are."""
        return [view for view in self.views if view]


@dataclass(frozen=True)
class Group:
    """The expectations of one experiment."""

    name: str
    """The experiment's anchor."""
    title: str
    document: str
    """The name of the document that says them."""
    counts: tuple[Count, ...]
    engines: tuple[str, ...]
    """The engines in words, in the order of the rows' measurements."""
    rows: tuple[Row, ...]

    @property
    def applying(self) -> list[Row]:
        """The statements of which an engine's measurement can be compared."""
        return [row for row in self.rows if row not in self.inapplicable]

    @property
    def inapplicable(self) -> list[Row]:
        """The statements that do not apply to these runs on any engine."""
        return [row for row in self.rows if {each.kind for each in row.verdicts} == {kind(Verdict.NOT_APPLICABLE)}]

    @property
    def verdicts(self) -> list[VerdictView]:
        """Every engine's verdicts."""
        return [verdict for row in self.rows for verdict in row.verdicts]


def view(evaluated: "ExpectationResult", anchor: str, why: str = "") -> VerdictView:
    """An evaluated expectation in words."""
    expectation = evaluated.expectation
    known = definition(expectation.metric)
    unit = "×" if expectation.relative_to else known.unit if known and expectation.share_in is None else ""
    low, high = expectation.band
    return VerdictView(
        anchor=anchor,
        says=expectation.says,
        figure=expectation.figure or "",
        measure=_measure(evaluated),
        band=band(low, high, unit),
        measured=_measured(evaluated.measured, evaluated.reach, unit),
        has_interval=evaluated.reach is not None,
        verdict=evaluated.verdict.words,
        symbol=SYMBOLS[evaluated.verdict],
        kind=kind(evaluated.verdict),
        shown_by=evaluated.shown_by or "",
        why=why,
        gauge=gauge(low, high, evaluated.measured, evaluated.reach),
        apart=tuple(each.sentence for each in evaluated.apart),
    )


def kind(verdict: Verdict) -> str:
    """A verdict as a CSS class."""
    return verdict.replace(" ", "-")


def counts(verdicts: Iterable[Verdict]) -> tuple[Count, ...]:
    """How often each verdict was given, the best first; verdicts that no expectation got are left out."""
    counted = Counter(verdicts)
    return tuple(Count(kind(v), SYMBOLS[v], v.words, counted[v]) for v in SYMBOLS if counted[v])


def group(
    anchor: str,
    title: str,
    document: str,
    evaluated: Sequence["ExpectationResult"],
    why: Mapping[str, str],
    numbers: Iterator[int],
) -> Group:
    """An experiment's expectations; `why` maps reasons to anchors, `numbers` numbers the page's expectations."""
    names = list(dict.fromkeys(each.engine for each in evaluated))

    def row(statement: DocumentStatement) -> Row:
        found = {
            name: view(each, f"statement-{next(numbers)}", why.get(each.reason or "", ""))
            for name, each in statement.by_engine.items()
        }
        return Row(found[statement.first.engine], tuple(found.get(name) for name in names))

    engines = tuple(in_words(name) for name in names) if len(names) > 1 else ("Measured",)
    rows = tuple(row(statement) for statement in statements(evaluated))
    return Group(anchor, title, document, counts(each.verdict for each in evaluated), engines, rows)


def by_document(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups of each document together, documents in the order of their first group."""
    documents = list(dict.fromkeys(group.document for group in groups))
    return tuple(sorted(groups, key=lambda group: documents.index(group.document)))


def _measure(evaluated: "ExpectationResult") -> str:
    expectation = evaluated.expectation
    point = ", ".join(evaluated.point.values())
    if expectation.relative_to:
        return f"{expectation.subject}: {point} over {', '.join(expectation.relative_to.values())}"
    return f"{expectation.subject} at {point}" if point else expectation.subject


def _measured(value: float | None, reach: float | None, unit: str) -> str:
    if value is None:
        return "not measured"
    if math.isinf(value):
        return "hidden by what was lost"
    if reach is not None:
        return f"{number(value)} ±{NBSP}{margin(reach, value)}{NBSP}{unit}".rstrip(NBSP)
    return with_unit(value, unit)


def gauge(low: float, high: float, measured: float | None, reach: float | None = None) -> Gauge | None:
    """Where the band and the measurement lie on a line that contains both; None for a band without ends.

    `reach` is half the width of the measurement's confidence interval, which the line contains as well.
    """
    ends = [end for end in (low, high) if math.isfinite(end)]
    if not ends:
        return None
    interval = None if measured is None or reach is None else (measured - reach, measured + reach)
    known = [] if measured is None or not math.isfinite(measured) else [measured]
    shown: list[float] = [*ends, *known, *(interval or ())]
    least, most = min(shown), max(shown)
    room = (most - least) * 0.3 or abs(most) * 0.5 or 1
    scale = GAUGE / (most - least + 2 * room)

    def at(value: float) -> float:
        return round(min(max((value - least + room) * scale, 0), GAUGE), 1)

    start, end = at(low), at(high)
    mark = None if measured is None or math.isnan(measured) else at(measured)
    return Gauge(start, round(end - start, 1), mark, interval and (at(interval[0]), at(interval[1])))
