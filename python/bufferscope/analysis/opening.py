"""What a page begins with if a command has an answer: the verdict, the table that it rests on, the line to type."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Opening:
    """An answer, for the top of a page. All texts are plain; the page escapes them."""

    verdict: str
    """One sentence."""
    more: tuple[str, ...]
    """Further sentences of the answer."""
    title: str
    """The table's title."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A cell for each column."""
    marked: int | None
    """The row of the answer, from 0."""
    commands: tuple[str, ...]
    """The lines to type."""
    notes: tuple[str, ...] = ()
    """What to know about the commands and the table."""
