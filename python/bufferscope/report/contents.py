"""The page's table of contents."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
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
    """Empty for a document, which has no place of its own."""
    words: str
    entries: tuple["Entry", ...] = ()
    """The experiments of a document."""


def contents(sections: Sequence[Section], documents: Sequence[str], *, has_verdicts: bool) -> tuple[Entry, ...]:
    """The entries of a page of several experiments; none for a page of one experiment, which needs no contents.

    The sections of each of the `documents` are together, and those of no document (an empty name) by themselves.
    """
    if len(sections) < 2:
        return ()
    before = [Entry("verdicts", "Verdicts")] * has_verdicts
    after = [Entry("meanings", "What the metrics mean")]
    between: list[Entry] = []
    for document, own in groupby(zip(documents, sections, strict=True), key=lambda each: each[0]):
        entries = [Entry(section.name, section.title) for _, section in own]
        between += [Entry("", document, tuple(entries))] if document else entries
    return (*before, *between, *after)


def of_points(summary: str, points: Sequence[Section]) -> tuple[Entry, ...]:
    """The entries of a page that compares several points: summary, points and runs; none for a single point."""
    if len(points) < 2:
        return ()
    return (
        Entry("summary", summary),
        *(Entry(each.name, each.title) for each in points),
        Entry("runs", "What was run"),
    )
