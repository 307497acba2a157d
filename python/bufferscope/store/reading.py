"""Reading run directories, with clear words about broken and foreign ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bufferscope import _core
from bufferscope.errors import StoreError
from bufferscope.store import FORMAT, METADATA

if TYPE_CHECKING:
    import polars as pl

REQUIRED: Mapping[str, type | tuple[type, ...]] = {
    "bufferscope": str,
    "experiment": str,
    "title": str,
    "engine": str,
    "engine_version": str,
    "seed": int,
    "point": dict,
    "scenario": dict,
    "started": str,
    "wall_s": (int, float),
    "cpu_s": (int, float),
    "sampling": dict,
    "mss_bytes": int,
    "machine": dict,
    "summary": dict,
    "warnings": list,
    "tables": dict,
}
"""The keys that `run.json` must have, and their types; further keys are let through."""

OPTIONAL: Mapping[str, type] = {
    "path": str,
    "document": dict,
    "expectations": list,
    "overrides": list,
    "position": int,
    "engine_identity": str,
}
"""The keys that `run.json` may leave out, which then are empty: records of other origin know of no experiment file,
and some engines have no identity."""


def read_metadata(directory: Path) -> dict[str, Any]:
    """`run.json` of a run directory."""
    path = directory / METADATA
    try:
        metadata = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(_absence(directory)) from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise StoreError(f"{path}: not JSON ({error}): the run is damaged; delete it and run again") from None
    _check(metadata, path)
    return metadata  # type: ignore[no-any-return]  # checked above


def read_table(directory: Path, name: str) -> "pl.DataFrame":
    """One table of a run directory."""
    import polars as pl

    path = directory / f"{name}.parquet"
    try:
        frame = pl.read_parquet(path)
    except FileNotFoundError:
        raise StoreError(f"{path}: not there: the run is damaged; delete it and run again") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        first_line = str(error).partition("\n")[0]
        raise StoreError(f"{path}: not readable ({first_line}): the run is damaged; delete it and run again") from None
    columns = _core.TABLES[name]
    if missing := [column for column in columns if column not in frame.columns]:
        raise StoreError(f"{path}: without the column {missing[0]}; expected {', '.join(columns)}")
    return frame


def is_run(directory: Path) -> bool:
    """Whether there is a run in the directory, broken or not."""
    return (directory / METADATA).is_file()


def _absence(directory: Path) -> str:
    if not directory.exists():
        return f"{directory}: no such run"
    if not directory.is_dir():
        return f"{directory}: found a file; a run is a directory with a {METADATA}"
    runs = sorted(entry for entry in directory.iterdir() if is_run(entry))
    hint = f"; there are runs in it, such as {runs[0]}" if runs else ""
    return f"{directory}: not a run: it has no {METADATA}{hint}"


def _check(metadata: object, path: Path) -> None:
    if not isinstance(metadata, dict) or "format" not in metadata:
        raise StoreError(f"{path}: not written by bufferscope: it has no key `format`")
    if metadata["format"] != FORMAT:
        raise StoreError(
            f"{path}: found format {metadata['format']!r}; this version of bufferscope reads {FORMAT}: run it again"
        )
    for key, empty in OPTIONAL.items():
        metadata.setdefault(key, empty())
    for key, kind in {**REQUIRED, **OPTIONAL}.items():
        if not isinstance(metadata.get(key), kind):
            found = f"found {metadata[key]!r:.60}" if key in metadata else "missing"
            raise StoreError(f"{path}: {key}: {found}: the run is damaged; delete it and run again")
