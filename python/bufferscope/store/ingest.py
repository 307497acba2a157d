"""Runs that arrive as bytes from elsewhere. They are not trusted; each is stored completely or not at all."""

from collections.abc import Mapping
from pathlib import Path

from bufferscope import _core
from bufferscope.base.errors import StoreError
from bufferscope.store import METADATA, tables
from bufferscope.store.reading import read_metadata
from bufferscope.store.writing import staged

Files = Mapping[str, bytes]
"""The files of a run by their names."""


def packed(directory: Path) -> dict[str, bytes]:
    """The files of a run that has just been written to a directory."""
    return {
        name: (directory / name).read_bytes() for name in _names() if _is_needed(name) or (directory / name).exists()
    }


def store(directory: Path, files: object, foreseen: Mapping[str, object]) -> None:
    """Store these files in `directory` if they are an undamaged run, and the run that was asked for.

    `foreseen` is what its `run.json` must say. Otherwise raises `StoreError` and leaves nothing of the run behind;
    raises `OSError` if the files can't be written.
    """
    content = _checked(files)
    with staged(directory) as staging:
        for name, data in content.items():
            (staging / name).write_bytes(data)
        try:
            _check(staging, foreseen)
        except StoreError as error:
            raise StoreError(str(error).replace(f"{staging}/", "")) from None


def _names() -> list[str]:
    return [*(tables.file_of(Path(), table).name for table in _core.TABLES), METADATA]


def _is_needed(name: str) -> bool:
    """Whether every run has a file of this name."""
    return Path(name).stem not in _core.OPTIONAL_TABLES


def _checked(files: object) -> Files:
    """These files, if they have the names and the type of a run's files."""
    names = _names()
    needed = {name for name in names if _is_needed(name)}
    if not isinstance(files, dict) or not needed <= set(files) <= set(names):
        raise StoreError(f"found something else than the files of a run; expected {', '.join(names)}")
    if not all(isinstance(data, bytes) for data in files.values()):
        raise StoreError("found a file that is not bytes")
    return {name: files[name] for name in names if name in files}


def _check(staging: Path, foreseen: Mapping[str, object]) -> None:
    """Raise `StoreError` if the run is damaged or is not the one that was asked for."""
    meta = read_metadata(staging)
    if found := tables.damage(staging, meta):
        raise StoreError(found)
    for key, value in foreseen.items():
        if meta.get(key) != value:
            raise StoreError(f"{METADATA}: another run than the one asked for: {key}: found {meta.get(key)!r:.80}")
