"""The file with the settings that were there before a change: one for each network namespace.

It is read by a process that may change the network, so it must belong to this user, and be writable by nobody else; and
each value is checked before it is used.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, cast

import platformdirs

from bufferscope.base.errors import EngineError
from bufferscope.engines.local.knobs import SavedKnob
from bufferscope.engines.local.trees import Tree
from bufferscope.store.schema import Mismatch, plain
from bufferscope.store.typed import Count, check_of

VERSION = 1
MOST_BYTES = 1 << 20
RUN = Path("/run/bufferscope")
"""Where root keeps it: the directory is empty after a restart, as the settings are."""
NAMESPACE = Path("/proc/self/ns/net")
BOOT = Path("/proc/sys/kernel/random/boot_id")

Status = Literal["changing", "applied", "kept"]


class SavedState(TypedDict):
    """The settings before a change, and the change."""

    version: Count
    boot: str
    """The kernel's `boot_id`."""
    interface: str
    ifindex: Count
    status: Status
    before: Tree
    after: list[str]
    """The lines of `tc qdisc show` after the change."""
    commands: list[str]
    """What was run."""
    block: str | None
    """The intermediate functional block that was made."""
    knobs: NotRequired[list[SavedKnob]]
    """Single settings, if the change has any."""


_CHECK = check_of(SavedState)


def directory() -> Path:
    """Where the file is. Raises `EngineError` if there is no directory of this user's own."""
    for place in (*([RUN] if os.geteuid() == 0 else []), Path(platformdirs.user_state_dir("bufferscope")) / "fix"):
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = place.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
            return place
    raise EngineError(
        "there is no directory of this user's own for the saved settings: neither /run nor XDG_STATE_HOME"
    )


def path() -> Path:
    """The file for this network namespace. Raises `EngineError`."""
    return directory() / f"fix-{NAMESPACE.stat().st_ino}.json"


def boot_id() -> str:
    """What identifies this start of the machine."""
    with suppress(OSError):
        return BOOT.read_text(encoding="ascii", errors="replace").strip()
    return "unknown"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Only one process at a time changes settings or undoes a change."""
    descriptor = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(file: Path) -> SavedState | None:
    """The saved settings; None if there are none. Raises `EngineError` if the file is not to be trusted."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EngineError(f"{file}: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise EngineError(f"{file}: not used, because other users may have written it; delete it")
        content = stream.read(MOST_BYTES + 1)
    try:
        if len(content) > MOST_BYTES:
            raise ValueError("too long")
        state = json.loads(content)
        plain(state, "")
        _CHECK(state, "")
        if state["version"] != VERSION:
            raise ValueError(f"version {state['version']}")
    except (ValueError, RecursionError, Mismatch) as error:
        raise EngineError(f"{file}: not used, because it is malformed ({error}); delete it") from None
    return cast(SavedState, state)


def write(file: Path, state: SavedState) -> None:
    """Store the settings; the file is replaced as a whole, and is on the disk before anything is changed."""
    part = file.with_suffix(".part")
    with suppress(FileNotFoundError):
        part.unlink()
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(state, stream)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)
