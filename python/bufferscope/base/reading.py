"""Files that a user names: only regular files of a bounded size are read."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from bufferscope import _core

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Unreadable(Exception):
    """A file that can't be read; the text says why, in a few words."""


def content(path: Path, most: int) -> bytes:
    """A file's content; no more is read than `most` bytes. Raises `Unreadable`.

    Only a regular file is read: a pipe or a device may block for ever, or never end.
    """
    try:
        # Without waiting: opening a pipe blocks until another process opens it for writing.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise Unreadable(f"found {KINDS.get(stat.S_IFMT(mode), 'not a regular file')}")
            found = _read_all(descriptor, most + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise Unreadable(str(error.strerror if isinstance(error, OSError) else error)) from None
    if len(found) > most:
        raise Unreadable(f"found more than {most} bytes")
    return found


def _read_all(descriptor: int, most: int) -> bytes:
    """The present content, up to `most` bytes; some files of /proc come in pieces, and some never end."""
    found = bytearray()
    while len(found) < most and (piece := os.read(descriptor, most - len(found))):
        found += piece
    return bytes(found)


class NamedFiles:
    """The files that an experiment names, relative to a directory. What was read once is known."""

    def __init__(self, directory: Path | None = None, known: Mapping[str, bytes] | None = None) -> None:
        """Files in a directory; without one, only those that are `known`."""
        self._directory = directory
        self.known = dict(known or {})

    def __call__(self, name: str) -> bytes:
        """The content of a file. Raises `Unreadable`."""
        if name not in self.known:
            if self._directory is None:
                raise Unreadable("the experiment is not in a file, so nothing is beside it")
            self.known[name] = content(self._directory / name, _core.MOST_TRACE_BYTES)
        return self.known[name]
