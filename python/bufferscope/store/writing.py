"""Writing run directories so that a half written one never looks whole."""

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
from typing import Any

from bufferscope.errors import InputError
from bufferscope.store import METADATA, PARTIAL
from bufferscope.store.exchange import exchange
from bufferscope.store.tables import digests

LONGEST_SLUG = 80


def directory_name(point: Mapping[str, str], engine: str, seed: int, scenario: Mapping[str, Any]) -> str:
    """A run's directory: readable, and different for whatever differs in point, engine, seed or scenario.

    >>> directory_name({"link.bottleneck.queue.limit": "50p"}, "sim", 1, {})
    'limit-50p-sim-s1-5d1b6a4a'
    """
    content = json.dumps([dict(point), scenario], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return f"{_slug(point)}-{engine}-s{seed}-{digest}"


def prepare(directory: Path) -> None:
    """Make the directory that run directories go into, and clear away what killed processes left there."""
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
def staged(directory: Path) -> Iterator[Path]:
    """A place to write a run; it becomes `directory` when the block ends well, and vanishes when it does not.

    A run of the same name that is already there is replaced: it had the same scenario, engine and seed. Several
    processes may do so at once, and others read meanwhile: they find one whole run or the other.
    """
    place, lock = _locked_place(directory)
    try:
        yield place
        _take_the_place_of(directory, place)
    finally:
        os.close(lock)
        shutil.rmtree(place, ignore_errors=True)


def write_metadata(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Write `run.json`, with the checksums of the tables that are there: the last file of a run to be written."""
    whole = {**metadata, "files": digests(directory)}
    (directory / METADATA).write_text(_text(whole), encoding="utf-8")


def rewrite_metadata(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Put another `run.json` in the place of a stored run's; whoever reads it meanwhile sees the one or the other."""
    place = directory / f"{PARTIAL}{METADATA}-{secrets.token_hex(4)}"
    try:
        place.write_text(_text(metadata), encoding="utf-8")
        place.replace(directory / METADATA)
    finally:
        place.unlink(missing_ok=True)


def _text(metadata: Mapping[str, Any]) -> str:
    return json.dumps(metadata, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _slug(point: Mapping[str, str]) -> str:
    parts = (f"{path.rpartition('.')[2]}-{label}" for path, label in point.items())
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", "_".join(parts)).strip("-.")
    return slug[:LONGEST_SLUG] or "run"


def _take_the_place_of(directory: Path, place: Path) -> None:
    """Rename `place`; where a run has the name already, `place` is what is left of that afterwards."""
    while True:
        try:
            place.rename(directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
        with suppress(FileNotFoundError):  # moved aside by another process, which has no `exchange`
            if exchange(place, directory):
                return
            _move_aside(directory)


def _move_aside(directory: Path) -> None:
    """Free a run's name on file systems that exchange nothing: for a moment nothing is there."""
    old = directory.with_name(f"{PARTIAL}old-{secrets.token_hex(4)}")
    directory.rename(old)
    shutil.rmtree(old, ignore_errors=True)


def _locked_place(directory: Path) -> tuple[Path, int]:
    """A new directory beside `directory`, and the lock that tells others that somebody is still writing there.

    The system drops the lock when we die. Until it is held, another process may take the new directory for an
    abandoned one and remove it.
    """
    while True:
        place = directory.with_name(f"{PARTIAL}{directory.name}-{secrets.token_hex(4)}")
        place.mkdir()
        with suppress(FileNotFoundError):
            lock = os.open(place, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if place.exists():
                return place, lock
            os.close(lock)


def _remove_if_abandoned(entry: Path) -> None:
    """Remove what a process left, unless one that is alive holds its lock."""
    with suppress(OSError):
        lock = os.open(entry, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(entry, ignore_errors=True)
        finally:
            os.close(lock)
