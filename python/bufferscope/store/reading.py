"""Reading run directories, with clear errors for those that are damaged or that bufferscope did not write.

Nothing in a run directory is trusted: it may be damaged, or come from anybody. `metadata` says what `run.json` must
look like; `tables` checks each table against it.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from bufferscope.base.errors import StoreError
from bufferscope.store import FORMAT, METADATA
from bufferscope.store.metadata import Metadata, checked
from bufferscope.store.schema import Mismatch

LARGEST_METADATA_BYTES = 64 << 20
"""More than the `run.json` of a sweep over 100,000 points with expectations at each of them."""
DAMAGED = "the run is damaged; delete it and run again"


def read_metadata(directory: Path) -> Metadata:
    """The `run.json` of a run directory; raises `StoreError` if it is missing or can't be relied on."""
    path = directory / METADATA
    found = read_json(path, LARGEST_METADATA_BYTES)
    check_directory(directory)
    try:
        return checked(found)
    except Mismatch as mismatch:
        raise StoreError(f"{path}: {mismatch}: {DAMAGED}") from None


def read_json(path: Path, most: int) -> Any:
    """The content of a `run.json` or `runs.json` of at most `most` bytes.

    Raises `StoreError` if it is not a JSON object of a format that this version reads.
    """
    try:
        content = read_file(path, most)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(_absence(path.parent)) from None
    try:
        found = json.loads(content, parse_constant=_refuse_constant)
    except RecursionError:
        raise StoreError(f"{path}: not JSON of a run (nested too deeply): {DAMAGED}") from None
    except ValueError as error:
        raise StoreError(f"{path}: not JSON ({error}): {DAMAGED}") from None
    _check_format(found, path)
    return found


def check_directory(directory: Path) -> None:
    """Raise `StoreError` if the directory's name can't be printed."""
    if not directory.resolve().name.isprintable():
        raise StoreError(f"{directory}: a name with characters that can't be shown: rename the directory")


def read_file(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises `StoreError` if the file is larger, or is not a regular file: a pipe or a device might never end. Raises
    `FileNotFoundError` or `NotADirectoryError` if there is no such file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise StoreError(f"{path}: not a file: {DAMAGED}")
            if about.st_size > most:
                raise StoreError(f"{path}: found {about.st_size} bytes; allowed: {most}: {DAMAGED}")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(about.st_size)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError, MemoryError) as error:
        raise StoreError(f"{path}: not readable ({reason(error)})") from None


def is_run(directory: Path) -> bool:
    """Whether the directory holds a run, damaged or not; raises `StoreError` without the permission to look."""
    return has_file(directory, METADATA)


def has_file(directory: Path, name: str) -> bool:
    """Whether the directory has a file of this name; raises `StoreError` without the permission to look."""
    try:
        return (directory / name).is_file()
    except OSError as error:
        raise StoreError(f"{directory}: not readable ({reason(error)})") from None


def reason(error: OSError | ValueError | MemoryError) -> str:
    """Why a file could not be opened or read; a `ValueError` is a name that no file can have."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or "not enough memory"


def _absence(directory: Path) -> str:
    try:
        if not directory.exists():
            return f"{directory}: no such run"
        if not directory.is_dir():
            return f"{directory}: found a file; a run is a directory with a {METADATA}"
        runs = sorted(entry for entry in directory.iterdir() if is_run(entry))
    except OSError as error:
        return f"{directory}: not readable ({reason(error)})"
    hint = f"; there are runs in it, such as {runs[0]}" if runs else ""
    return f"{directory}: not a run: it has no {METADATA}{hint}"


def _check_format(found: object, path: Path) -> None:
    if not isinstance(found, dict) or "format" not in found:
        raise StoreError(f"{path}: not written by bufferscope: it has no key `format`")
    if found["format"] != FORMAT:
        raise StoreError(
            f"{path}: found format {found['format']!r:.20}; this version of bufferscope reads {FORMAT}: run it again"
        )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
