"""The terminal, and how tables look on it."""

import os

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_WITHOUT_TERMINAL = 160


def console() -> Console:
    """Standard output; if that is not a terminal, as wide as `COLUMNS` says, or else of a fixed width."""
    found = Console()
    return found if found.is_terminal or "COLUMNS" in os.environ else Console(width=WIDTH_WITHOUT_TERMINAL)


def plain_table(title: str) -> Table:
    """A table, without columns so far."""
    return Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
