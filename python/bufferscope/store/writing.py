"""Writing run directories so that a partly written one never looks complete."""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bufferscope.base.errors import InputError
from bufferscope.store import METADATA, PARTIAL
from bufferscope.store.exchange import exchange
from bufferscope.store.tables import digests

LONGEST_SLUG = 80


def directory_name(point: Mapping[str, str], engine: str, seed: int, scenario: Mapping[str, object]) -> str:
    """The name of a run's directory: readable, and unique for each point, engine, seed and scenario.

    >>> directory_name({"link.bottleneck.queue.limit": "50p"}, "sim", 1, {})
    'limit-50p-sim-s1-5d1b6a4a'
    """
    content = json.dumps([dict(point), scenario], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return f"{_slug(point)}-{engine}-s{seed}-{digest}"


def prepare(directory: Path) -> None:
    """Make the parent of the run directories, and remove what killed processes left there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        abandoned = [entry for entry in directory.iterdir() if entry.name.startswith(PARTIAL)]
    except OSError as error:
        raise InputError(f"{directory}: cannot write results here: {error.strerror}") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{directory}: cannot write results here: no permission")
    for entry in abandoned:
        _remove_if_abandoned(entry)


@contextmanager
def prepared(directory: Path) -> Iterator[None]:
    """`prepare` a directory for the block. If the block fails, the directories that were made and are empty go."""
    new = [each for each in (directory, *directory.parents) if not each.exists()]
    prepare(directory)
    try:
        yield
    except BaseException:
        for each in new:
            with suppress(OSError):
                each.rmdir()
        raise


@contextmanager
def staged(directory: Path) -> Iterator[Path]:
    """A new directory to write a run to. If the block succeeds, it becomes `directory`; otherwise it is removed.

    A run that already has this name is replaced: it had the same scenario, engine and seed. Several processes may do
    this at the same time while others read: a reader finds either the old run or the new one, and always a complete
    one.
    """
    staging, lock = _locked_directory(directory)
    try:
        yield staging
        _replace(directory, staging)
    finally:
        os.close(lock)
        shutil.rmtree(staging, ignore_errors=True)


def write_metadata(directory: Path, metadata: Mapping[str, object]) -> None:
    """Write `run.json` with the checksums of the tables that exist. It must be the last file of a run to be written."""
    whole = {**metadata, "files": digests(directory)}
    (directory / METADATA).write_text(_text(whole), encoding="utf-8")


def rewrite_metadata(directory: Path, metadata: Mapping[str, object]) -> None:
    """Replace the `run.json` of a stored run. Other processes read either the old file or the new one."""
    staging = directory / f"{PARTIAL}{METADATA}-{secrets.token_hex(4)}"
    try:
        staging.write_text(_text(metadata), encoding="utf-8")
        staging.replace(directory / METADATA)
    finally:
        staging.unlink(missing_ok=True)


def _text(metadata: Mapping[str, object]) -> str:
    return json.dumps(metadata, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _slug(point: Mapping[str, str]) -> str:
    parts = (f"{path.rpartition('.')[2]}-{label}" for path, label in point.items())
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", "_".join(parts)).strip("-.")
    return slug[:LONGEST_SLUG] or "run"


def _replace(directory: Path, staging: Path) -> None:
    """Rename `staging` to `directory`. If a run already has that name, `staging` may hold the old run afterwards."""
    while True:
        try:
            staging.rename(directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
        with suppress(FileNotFoundError):  # moved aside by another process, which has no `exchange`
            if exchange(staging, directory):
                return
            _move_aside(directory)


def _move_aside(directory: Path) -> None:
    """Free a run's name on file systems that can't exchange names; for a moment no run has the name."""
    old = directory.with_name(f"{PARTIAL}old-{secrets.token_hex(4)}")
    directory.rename(old)
    shutil.rmtree(old, ignore_errors=True)


def _locked_directory(directory: Path) -> tuple[Path, int]:
    """A new directory beside `directory`, and a lock that tells other processes that we are still writing to it.

    The system releases the lock when our process ends. Until we hold the lock, another process may believe that the new
    directory is abandoned and remove it.
    """
    while True:
        staging = directory.with_name(f"{PARTIAL}{directory.name}-{secrets.token_hex(4)}")
        staging.mkdir()
        with suppress(FileNotFoundError):
            lock = os.open(staging, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if staging.exists():
                return staging, lock
            os.close(lock)


def _remove_if_abandoned(entry: Path) -> None:
    """Remove a directory that a process left, unless a running process holds its lock."""
    with suppress(OSError):
        lock = os.open(entry, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(entry, ignore_errors=True)
        finally:
            os.close(lock)
