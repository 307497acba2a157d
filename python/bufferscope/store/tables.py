"""The tables of a run, checked against `run.json` before their content is used.

`run.json` holds the size and the SHA-256 of every file that bufferscope wrote, so damage is found before a decoder
reads the file. Records of other origin may have neither; `trial` first decodes them in another process.
"""

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope import _core
from bufferscope.base.errors import StoreError
from bufferscope.store.metadata import Metadata, TableFile
from bufferscope.store.reading import DAMAGED, read_file, read_metadata
from bufferscope.store.sandboxed_decode import failures, memory_bytes

if TYPE_CHECKING:
    import polars as pl

_TEXTS = frozenset(
    {
        "probe",
        "flow",
        "port",
        "layer",
        "reason",
        "observed",
        "traffic",
        "state",
        "direction",
        "half",
        "method",
        "kind",
        "way",
        "ladder",
        "address",
        "end",
        "stage",
    }
)
_FLAGS = frozenset({"app_limited", "spurious", "mpls"})
"""These columns, and those of `_TEXTS`, hold no integers."""
_VALUE_BYTES = 8
"""Roughly what a value takes in memory."""


def file_of(directory: Path, table: str) -> Path:
    """The file of a table in a run directory."""
    return directory / f"{table}.parquet"


def columns(table: str) -> "dict[str, type[pl.DataType]]":
    """The columns of a table with their types."""
    import polars as pl

    kinds: dict[str, type[pl.DataType]] = {"string": pl.String, "boolean": pl.Boolean, "integer": pl.Int64}
    return {column: kinds[kind] for column, kind in schema()[table].items()}


def nothing(table: str) -> "pl.DataFrame":
    """The table without rows."""
    import polars as pl

    return pl.DataFrame(schema=columns(table))


def schema() -> dict[str, dict[str, str]]:
    """The kind of every column of every table: `string`, `boolean` or `integer` (64 bits); any may have nulls."""
    return {
        table: {
            column: "string" if column in _TEXTS else "boolean" if column in _FLAGS else "integer" for column in own
        }
        for table, own in _core.TABLES.items()
    }


def rows(path: Path, table: str) -> int:
    """The number of rows of a new file of this table; raises `StoreError` if its columns are others."""
    import polars as pl

    try:
        _check_columns(path, columns(table), pl.read_parquet_schema(path))
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(path, str(error)) from None


def digests(directory: Path) -> dict[str, TableFile]:
    """Size and SHA-256 of every table's file, in the form of `run.json`; missing files are left out."""
    found = {table: file_of(directory, table) for table in _core.TABLES}
    return {table: _digest(path.read_bytes()) for table, path in found.items() if path.is_file()}


def damage(directory: Path, metadata: Metadata) -> str | None:
    """What is wrong with the stored files of a run's tables, in words; None if they are as they were written."""
    for table in _core.TABLES:
        if _is_absent(directory, table, metadata):
            continue
        try:
            _content(directory, table, metadata)
        except StoreError as error:
            return str(error).removesuffix(f": {DAMAGED}")
        if table not in metadata["files"]:
            return f"{file_of(directory, table)}: run.json has no checksum of it"
    return None


def undecodable(directory: Path, metadata: Metadata) -> dict[str, str]:
    """The tables without a checksum that can't be decoded, or hold unknown words, each with the reason.

    This takes a moment if any table has no checksum.
    """
    files = {table: file_of(directory, table) for table in _core.TABLES if table not in metadata["files"]}
    files = {table: file for table, file in files.items() if file.is_file()}
    failed = failures(list(files.values()))
    found = {table: failed.get(file) or _unknown_word(file, table) for table, file in files.items()}
    return {table: why for table, why in found.items() if why}


def _unknown_word(path: Path, table: str) -> str | None:
    """A message with the first word of a table's file that its column cannot have; None if all words are known."""
    import polars as pl

    for column, words in _core.WORDS[table].items():
        try:
            unknown = pl.scan_parquet(path).filter(~pl.col(column).is_in(words)).select(column).head(1).collect()
        except (OSError, pl.exceptions.PolarsError):
            return None  # `scan` says which column is missing or of another type
        if unknown.height:
            return f"column {column}: found {unknown.item()!r:.40}; allowed: {', '.join(words)}"
    return None


def read(directory: Path, run: str, table: str, columns: Sequence[str], metadata: Metadata) -> "pl.DataFrame":
    """Some columns of a table of a run as a frame; before them, the column `run` is the run's id.

    Raises `StoreError` if the table is not what `metadata` says. The caller must know that a table without a checksum
    can be decoded.
    """
    import polars as pl

    if _is_absent(directory, table, metadata):
        return nothing(table).select(pl.lit("", pl.String).alias("run"), *columns).clear()
    stored = scan(directory, table, _content(directory, table, metadata), metadata["tables"].get(table))
    return collected(directory, table, stored.select(pl.lit(run).alias("run"), *columns))


def scan(directory: Path, table: str, stored: bytes, rows: int | None, number: str | None = None) -> "pl.LazyFrame":
    """The content of a table's file as a lazy frame.

    Raises `StoreError` if the number of rows is not `rows`, or if the columns are not those of the table. The table of
    several runs must have the integer column `number` before them.
    """
    import polars as pl

    path = file_of(directory, table)
    wanted = ({number: pl.Int32} if number else {}) | columns(table)
    try:
        _check_columns(path, wanted, pl.read_parquet_schema(io.BytesIO(stored)))
        frame = pl.scan_parquet(io.BytesIO(stored))
        found = int(frame.select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(path, str(error)) from None
    _check_rows(path, found, rows, len(wanted))
    return frame.select(*wanted)


def collected(directory: Path, table: str, query: "pl.LazyFrame") -> "pl.DataFrame":
    """The result of a query of a table; raises `StoreError` if its file can't be decoded."""
    import polars as pl

    try:
        return query.collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(file_of(directory, table), str(error)) from None


def unreadable(path: Path, why: str) -> StoreError:
    """The error that says why a table's file can't be read."""
    first_line = why.partition("\n")[0]
    return StoreError(f"{path}: not readable ({first_line:.200}): {DAMAGED}")


def content(directory: Path, table: str, written: TableFile | None, cause: Callable[[], str]) -> bytes:
    """The bytes of a table's file, checked against the size and the checksum in `written`, if given.

    Raises `StoreError` with the `cause` if they differ.
    """
    path = file_of(directory, table)
    try:
        found = read_file(path, memory_bytes())
    except FileNotFoundError:
        raise StoreError(f"{path}: not there: {DAMAGED}") from None
    except NotADirectoryError:
        raise StoreError(f"{directory}: no such run") from None
    if written and written != _digest(found):
        size = f"found {len(found)} bytes; {written['bytes']} were written"
        what = "not what was written (its SHA-256 is another)" if written["bytes"] == len(found) else size
        raise StoreError(f"{path}: {what}: {cause()}")
    return found


def _is_absent(directory: Path, table: str, metadata: Metadata) -> bool:
    """Whether the run has no row of an optional table, and therefore no file of it."""
    if table not in _core.OPTIONAL_TABLES or table in metadata["files"] or metadata["tables"].get(table):
        return False
    return not file_of(directory, table).exists()


def _content(directory: Path, table: str, metadata: Metadata) -> bytes:
    """The bytes of the file of a run's table, checked against `metadata`."""
    return content(directory, table, metadata["files"].get(table), lambda: _cause(directory, metadata))


def _cause(directory: Path, metadata: Metadata) -> str:
    """Why a table is not the one that `metadata` describes."""
    if read_metadata(directory)["files"] != metadata["files"]:
        return "another run has taken its place since it was loaded; load it again"
    return DAMAGED


def _digest(found: bytes) -> TableFile:
    return {"bytes": len(found), "sha256": hashlib.sha256(found).hexdigest()}


def _check_columns(path: Path, columns: "Mapping[str, type[pl.DataType]]", found: "Mapping[str, pl.DataType]") -> None:
    for column, kind in columns.items():
        if column not in found:
            raise StoreError(f"{path}: without the column {column}; expected {', '.join(columns)}")
        if found[column] != kind:
            raise StoreError(f"{path}: column {column}: found {found[column]!s:.60}; expected {kind()}")


def _check_rows(path: Path, rows: int, written: int | None, columns: int) -> None:
    """Raise `StoreError` if the number of rows is not the number written, or if memory can't hold so many rows."""
    if written is not None and rows != written:
        raise StoreError(f"{path}: found {rows} rows; {written} were written: {DAMAGED}")
    if rows * columns * _VALUE_BYTES > memory_bytes():
        raise StoreError(f"{path}: found {rows} rows, for which this machine has not enough memory")
