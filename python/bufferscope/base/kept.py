"""What is slow to make and always the same, kept in this user's cache from one command to the next.

A cache that can't be read or written is no error: then it is made again. Files of another user are not read, because
what is kept may be code, which a command under `sudo` would otherwise run with root's rights.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def _directory() -> Path:
    """On Linux `$XDG_CACHE_HOME/bufferscope/pages`, by default `~/.cache/bufferscope/pages`."""
    from platformdirs import user_cache_path

    return user_cache_path("bufferscope") / "pages"


def read(name: str) -> bytes | None:
    """What is kept under this name, if anything."""
    with suppress(OSError), (_directory() / name).open("rb") as file:
        if os.fstat(file.fileno()).st_uid == os.geteuid():
            return file.read()
    return None


def write(name: str, content: bytes) -> None:
    """Keep this under a name, which says everything on which the content depends; a reader never sees a part of it."""
    with suppress(OSError):
        directory = _directory()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            try:
                file.write(content)
                file.close()
                Path(file.name).replace(directory / name)
            except OSError:
                Path(file.name).unlink(missing_ok=True)
