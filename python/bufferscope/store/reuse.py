"""Runs that are there already: whether running again would give the same records, and what else has changed."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bufferscope.errors import StoreError
from bufferscope.store import tables
from bufferscope.store.reading import is_run, read_metadata
from bufferscope.store.run import Run
from bufferscope.store.writing import rewrite_metadata

_log = logging.getLogger(__name__)


def stored(directory: Path, identity: str | None, scenario: Mapping[str, Any], about: Mapping[str, Any]) -> Run | None:
    """The run of this directory, if it is one of this scenario by an engine of this identity, and undamaged; else None.

    Its records stay as they are. What its `run.json` tells of the experiment's file (`about`: title, document,
    expectations, ...) becomes what the file says now: none of that has a part in the records. Why a damaged run is to
    be made again is logged.
    """
    if identity is None or not is_run(directory):
        return None
    try:
        meta = read_metadata(directory)
    except StoreError as error:
        _tell(str(error))
        return None
    if meta["engine_identity"] != identity or meta["scenario"] != scenario:
        return None
    if found := tables.damage(directory, meta):
        _tell(found)
        return None
    if any(meta[key] != value for key, value in about.items()):
        try:
            rewrite_metadata(directory, meta | dict(about))
        except FileNotFoundError:  # another process has just put its own run there
            return None
    return Run(directory)


def _tell(damage: str) -> None:
    """Tell why a stored run is not taken; without a handler of the program's, Python prints it to standard error."""
    _log.warning("not reused, but made again: %s", damage)
