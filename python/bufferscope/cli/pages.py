"""Writing pages for the commands."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.base.errors import InputError
from bufferscope.cli.interruption import at_once
from bufferscope.cli.progress import steps

if TYPE_CHECKING:
    from bufferscope.results.result import Result

Step = Callable[[int, int], None]
"""Called with the number of parts of a page done so far, and the total."""


def is_drawable(result: "Result") -> bool:
    """Whether a page can show all points of a result; if not, a message goes to standard error."""
    from bufferscope.figures.source import MOST_POINTS, size

    if (points := size(result)) <= MOST_POINTS:
        return True
    print(f"No page is written: it can show {MOST_POINTS} points, not {points}.", file=sys.stderr, flush=True)
    return False


def page(directory: Path, write: Callable[[Path, Step], Path], *, silent: bool, left: str = "") -> Path:
    """The page that `write` puts into a directory; shows progress unless silent.

    Raises `InputError` if the directory can't be written to, and on Ctrl-C `CutShortError`, which says what is `left`.
    """
    with steps("Making the page", silent=silent, shares=True) as step:
        return at_once("making the page", lambda: _written(directory, lambda: write(directory, step)), left)


def _written(directory: Path, write: Callable[[], Path]) -> Path:
    try:
        return write()
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot write the report here: {error.strerror}") from None
