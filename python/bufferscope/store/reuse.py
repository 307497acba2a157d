"""Runs that are there already: whether running again would give the same records, and what else has changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bufferscope import _core
from bufferscope.errors import StoreError
from bufferscope.store.reading import is_run, read_metadata
from bufferscope.store.run import Run
from bufferscope.store.writing import rewrite_metadata


def stored(directory: Path, identity: str | None, scenario: Mapping[str, Any], about: Mapping[str, Any]) -> Run | None:
    """The run of this directory, if it is one of this scenario by an engine of this identity; else None.

    Its records stay as they are. What its `run.json` tells of the experiment's file (`about`: title, document,
    expectations, ...) becomes what the file says now: none of that has a part in the records.
    """
    if identity is None or not is_run(directory):
        return None
    try:
        meta = read_metadata(directory)
    except StoreError:
        return None
    if meta["engine_identity"] != identity or meta["scenario"] != scenario or not _has_tables(directory):
        return None
    if any(meta[key] != value for key, value in about.items()):
        rewrite_metadata(directory, meta | dict(about))
    return Run(directory)


def _has_tables(directory: Path) -> bool:
    return all((directory / f"{table}.parquet").is_file() for table in _core.TABLES)
