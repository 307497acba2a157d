"""Writing pages for the commands."""

from collections.abc import Callable
from pathlib import Path

from bufferscope.errors import InputError


def written(directory: Path, write: Callable[[], Path]) -> Path:
    """The page that `write` puts into a directory; raises `InputError` where that can't be written to."""
    try:
        return write()
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot write the report here: {error.strerror}") from None
