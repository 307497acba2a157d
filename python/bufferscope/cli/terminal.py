"""The terminal, how tables look on it, and what of foreign text reaches it.

Names, comments, addresses and messages come from files that anybody may have written. All output for people goes
through `console` here or through `saying`, which write the characters that control terminals (also those that turn the
direction of writing) as escapes, and take no text for markup.
"""

import os
from collections.abc import Iterable

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bufferscope.base.errors import printable_lines

WIDTH_WITHOUT_TERMINAL = 160


class PlainConsole(Console):
    """A console whose text is text: without markup, and without characters that control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as usual; rich's own control codes stay."""
        for segment in super().render(renderable, options):
            is_plain = segment.control or segment.text.isprintable()
            yield segment if is_plain else Segment(printable_lines(segment.text), segment.style)


def console() -> Console:
    """Standard output; if that is not a terminal, as wide as `COLUMNS` says, or else of a fixed width."""
    found = _console()
    return found if found.is_terminal or "COLUMNS" in os.environ else _console(WIDTH_WITHOUT_TERMINAL)


def _console(width: int | None = None) -> Console:
    return PlainConsole(width=width, markup=False, emoji=False)


def plain_table(title: str) -> Table:
    """A table, without columns so far."""
    return Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
