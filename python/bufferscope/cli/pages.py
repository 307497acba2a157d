"""Writing pages for the commands."""

from collections.abc import Callable
from pathlib import Path

from bufferscope.cli.interruption import at_once
from bufferscope.cli.progress import steps
from bufferscope.errors import InputError

Step = Callable[[int, int], None]
"""Called with the number of parts of a page done so far, and the total."""


def page(directory: Path, write: Callable[[Path, Step], Path], *, silent: bool, left: str = "") -> Path:
    """The page that `write` puts into a directory; shows progress unless silent.

    Raises `InputError` if the directory can't be written to, and on Ctrl-C `CutShortError`, which says what is `left`.
    """
    with steps("Making the page", silent=silent) as step:
        return at_once("making the page", lambda: _written(directory, lambda: write(directory, step)), left)


def _written(directory: Path, write: Callable[[], Path]) -> Path:
    try:
        return write()
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot write the report here: {error.strerror}") from None
