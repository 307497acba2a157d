"""The page's table of contents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Section(Protocol):
    """A part of the page with a heading."""

    @property
    def name(self) -> str:
        """The part's anchor."""

    @property
    def title(self) -> str:
        """The part's heading."""


@dataclass(frozen=True)
class Entry:
    """A line of the table of contents."""

    anchor: str
    words: str


def contents(sections: Sequence[Section], *, has_verdicts: bool, has_reasons: bool) -> tuple[Entry, ...]:
    """The entries of a page of several experiments; none for a page of one experiment, which needs no contents."""
    if len(sections) < 2:
        return ()
    before = [Entry("verdicts", "Verdicts")] * has_verdicts + [Entry("why", "What differs, and why")] * has_reasons
    after = [Entry("meanings", "What the metrics mean")]
    return (*before, *(Entry(section.name, section.title) for section in sections), *after)


def of_points(summary: str, points: Sequence[Section]) -> tuple[Entry, ...]:
    """The entries of a page that compares several points: summary, points and runs; none for a single point."""
    if len(points) < 2:
        return ()
    return (
        Entry("summary", summary),
        *(Entry(each.name, each.title) for each in points),
        Entry("runs", "What was run"),
    )
