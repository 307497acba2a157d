"""The terminal, and how tables look on it."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_WITHOUT_TERMINAL = 160


def console() -> Console:
    """Standard output; of a fixed width where that is no terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


def plain_table(title: str) -> Table:
    """A table without columns yet."""
    return Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
