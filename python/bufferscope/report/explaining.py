"""What each point shows in sentences, each linked to the figure on the page that shows it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from bufferscope.analysis.explanation import Statement, explain_run

if TYPE_CHECKING:
    from bufferscope.figures.source import PlottedPoint

MOST_POINTS = 12
"""The most points of a section that are explained; the command `explain` takes all."""
MOST_OF_MANY = 4
"""The same on a page of several experiments."""


@dataclass(frozen=True)
class SentenceView:
    """A sentence."""

    sentence: str
    unknown: str
    """What it leaves open; empty if nothing."""
    figure: str
    """The anchor of the figure that shows it; empty if the page does not draw it."""
    title: str
    """The figure's title."""


@dataclass(frozen=True)
class ExplainedPointView:
    """A point with its explanation: that of its first run."""

    label: str
    """Empty if there is only one point."""
    verdict: SentenceView
    statements: tuple[SentenceView, ...]


@dataclass(frozen=True)
class ExplainedView:
    """The explanations of a section."""

    points: tuple[ExplainedPointView, ...]
    left_out: int
    """Points that are not explained here."""
    seed: int
    """The seed of the runs that are explained, of several; 0 if each point has one run."""


def view(
    points: "Sequence[PlottedPoint]",
    section: str,
    drawn: Mapping[str, str],
    most: int = MOST_POINTS,
    step: Callable[[], None] = lambda: None,
) -> ExplainedView:
    """The explanations of the first `most` points of a section; `drawn` has the figures in it, name to title.

    `step` is called before each point.
    """

    def explained(point: "PlottedPoint") -> ExplainedPointView:
        step()
        return _point(point, section, drawn)

    several = any(len(point.runs) > 1 for point in points)
    return ExplainedView(
        points=tuple(map(explained, islice(points, most))),
        left_out=max(0, len(points) - most),
        seed=points[0].first.seed if several else 0,
    )


def _point(point: "PlottedPoint", section: str, drawn: Mapping[str, str]) -> ExplainedPointView:
    verdict, *others = _told(explain_run(point.first).statements, section, drawn)
    return ExplainedPointView(point.label, verdict, tuple(others))


def _told(statements: Sequence[Statement], section: str, drawn: Mapping[str, str]) -> Iterator[SentenceView]:
    for statement in statements:
        anchor = statement.anchor(section) if statement.figure in drawn else None
        title = drawn.get(statement.figure or "", "")
        yield SentenceView(statement.sentence, statement.unknown or "", anchor or "", title)
