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
class ContentsEntry:
    """A line of the table of contents."""

    anchor: str
    """Empty for a document, which has no anchor of its own."""
    words: str
    entries: tuple["ContentsEntry", ...] = ()
    """The experiments of a document."""


def contents(sections: Sequence[Section], documents: Sequence[str], *, has_verdicts: bool) -> tuple[ContentsEntry, ...]:
    """The entries of a page of several experiments; none for a page of one experiment, which needs no contents.

    The sections of each of the `documents` are together, and those of no document (an empty name) by themselves.
    """
    if len(sections) < 2:
        return ()
    before = [ContentsEntry("verdicts", "Verdicts")] * has_verdicts
    after = [ContentsEntry("meanings", "What the metrics mean")]
    between: list[ContentsEntry] = []
    for document, own in groupby(zip(documents, sections, strict=True), key=lambda each: each[0]):
        entries = [ContentsEntry(section.name, section.title) for _, section in own]
        between += [ContentsEntry("", document, tuple(entries))] if document else entries
    return (*before, *between, *after)


def of_points(summary: str, points: Sequence[Section]) -> tuple[ContentsEntry, ...]:
    """The entries of a page that compares several points: summary, points and runs; none for a single point."""
    if len(points) < 2:
        return ()
    return (
        ContentsEntry("summary", summary),
        *(ContentsEntry(each.name, each.title) for each in points),
        ContentsEntry("runs", "What was run"),
    )
