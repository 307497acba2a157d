"""Why an experiment's measurements differ from its document: each reason with the expectations that it explains."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bufferscope.report.verdicts import SYMBOLS, Group, VerdictView, kind
from bufferscope.results.verdicts import Verdict

if TYPE_CHECKING:
    from bufferscope.results.verdicts import ExpectationResult


@dataclass(frozen=True)
class Subject:
    """An expectation that a reason explains."""

    anchor: str
    measure: str
    shown_by: str


@dataclass(frozen=True)
class Reason:
    """The reason for the verdict of some expectations."""

    anchor: str
    text: str
    verdict: str
    symbol: str
    kind: str
    subjects: tuple[Subject, ...]


@dataclass(frozen=True)
class StatementCounts:
    """How many of the statements that apply were reproduced, and how many differ."""

    total: int
    reproduced: int
    differ: int
    not_applicable: int


def outcome(groups: Sequence[Group]) -> StatementCounts:
    """The counts over all statements. One is reproduced if it is on every engine on which it applies."""
    apart = kind(Verdict.NOT_APPLICABLE)
    rows = [{verdict.kind for verdict in row.verdicts} - {apart} for group in groups for row in group.rows]
    applying = [kinds for kinds in rows if kinds]
    reproduced = sum(kinds == {kind(Verdict.REPRODUCED)} for kinds in applying)
    return StatementCounts(len(applying), reproduced, len(applying) - reproduced, len(rows) - len(applying))


def reason_anchors(evaluated: Sequence["ExpectationResult"], numbers: Iterator[int]) -> dict[str, str]:
    """The anchor of each reason, in the order of an experiment's expectations; `numbers` numbers the page's reasons."""
    texts = dict.fromkeys(each.reason for each in evaluated if each.reason)
    return {text: f"why-{next(numbers)}" for text in texts}


def reasons(group: Group, texts: Mapping[str, str], numbers: Iterator[int]) -> tuple[Reason, ...]:
    """A group's expectations that were not reproduced, by reason and verdict: the mildest difference first.

    `texts` is what `reason_anchors` returned. Differences without a reason are listed too, with an empty text.
    """
    found: dict[tuple[str, str], list[VerdictView]] = {}
    for verdict in group.verdicts:
        if verdict.kind != kind(Verdict.REPRODUCED):
            found.setdefault((verdict.kind, verdict.why), []).append(verdict)
    order = [kind(verdict) for verdict in SYMBOLS]
    by_anchor = {anchor: text for text, anchor in texts.items()}
    used: set[str] = set()
    ordered = sorted(found.items(), key=lambda item: order.index(item[0][0]))
    return tuple(
        Reason(
            anchor=_once(why or f"why-{next(numbers)}", used),
            text=by_anchor.get(why, ""),
            verdict=about[0].verdict,
            symbol=about[0].symbol,
            kind=verdict_kind,
            subjects=tuple(Subject(each.anchor, each.measure, each.shown_by) for each in about),
        )
        for (verdict_kind, why), about in ordered
    )


def _once(anchor: str, used: set[str]) -> str:
    """The anchor, changed if another reason already has it: the same text may explain two verdicts."""
    while anchor in used:
        anchor += "-too"
    used.add(anchor)
    return anchor
