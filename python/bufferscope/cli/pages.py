"""Writing pages for the commands."""

import sys
from collections.abc import Callable
from pathlib import Path

from bufferscope.errors import InputError


def written(directory: Path, write: Callable[[], Path]) -> Path:
    """The page that `write` puts into a directory; raises `InputError` where that can't be written to."""
    try:
        return write()
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot write the report here: {error.strerror}") from None


def page(directory: Path, write: Callable[[Path], Path], silent: bool) -> Path:
    """Like `written`, of a function that takes the directory; says what takes the time unless it is to be silent."""
    if not silent:
        print("Drawing the figures", file=sys.stderr, flush=True)
    return written(directory, lambda: write(directory))
