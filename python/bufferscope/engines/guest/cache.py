"""The cache of built guests; an entry appears in it only when it is complete."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def root() -> Path:
    """`guest` in this user's cache: on Linux `$XDG_CACHE_HOME/bufferscope`, by default `~/.cache/bufferscope`."""
    from platformdirs import user_cache_path

    return user_cache_path("bufferscope") / "guest"


def directory(kind: str) -> Path:
    """The directory for `packages`, `images` or `states`; it exists afterwards."""
    path = root() / kind
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory to fill; it becomes `target` when the block ends without an exception, and is removed otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".partial-{target.name}-", dir=target.parent))
    try:
        yield partial
        if not target.exists():
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def used(path: Path) -> None:
    """Record that an entry is used now: the least recently used one is removed first to make room."""
    with suppress(FileNotFoundError):
        os.utime(path)


@contextmanager
def lock(name: str) -> Iterator[None]:
    """A lock that one process holds at a time; it is released when the process ends, however it ends."""
    with (directory("locks") / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def attempted_lock(name: str) -> Iterator[bool]:
    """Whether the lock was free; if so, we hold it until the block or the process ends."""
    with (directory("locks") / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
