"""Writing pages for the commands."""

from collections.abc import Callable
from pathlib import Path

from bufferscope.cli.interruption import at_once
from bufferscope.cli.progress import steps
from bufferscope.errors import InputError

Step = Callable[[int, int], None]
"""Is told how many parts of a page are drawn, and how many there are."""


def page(directory: Path, write: Callable[[Path, Step], Path], *, silent: bool, left: str = "") -> Path:
    """The page that `write` puts into a directory, with progress unless it is to be silent.

    Raises `InputError` where that can't be written to, and `CutShortError`, which tells what is `left`, on Ctrl-C.
    """
    with steps("Drawing the figures", silent=silent) as step:
        return at_once("drawing the figures", lambda: _written(directory, lambda: write(directory, step)), left)


def _written(directory: Path, write: Callable[[], Path]) -> Path:
    try:
        return write()
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot write the report here: {error.strerror}") from None
