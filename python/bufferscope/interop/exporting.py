"""Export runs: one tidy file per table; every row says which run it belongs to.

Files are written under temporary names and renamed together when all are complete. Records are read in batches of
runs, so that memory does not grow with the number of runs.
"""

import errno
import json
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from bufferscope._core import OPTIONAL_TABLES, TABLES
from bufferscope.base.errors import InputError
from bufferscope.base.names import closest
from bufferscope.interop import masking
from bufferscope.results.variation import Variation
from bufferscope.store import PARTIAL
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl

    from bufferscope.metrics.batch import Batch

ABOUT: Mapping[str, str] = {
    "csv": "a file per table, for spreadsheets and any other program",
    "parquet": "the same, typed and compressed, for polars, pandas or R",
    "json": "the same as JSON, one document per table",
    "flent": "a data file of Flent for each run (.flent.gz)",
    "pcapng": "the packets of each run, for Wireshark",
    "qlog": "the changes of TCP's state in each connection, as events (.sqlog)",
}
"""Every format, with what it is."""
TableFormat = Literal["csv", "parquet", "json"]
FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)
PER_RUN = ("flent",)
"""The formats with a file for each run."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a directory that was named correctly."""
METRICS, RUNS = "metrics", "runs"
FORMULA, NUMBER = r"^[=+@\t\r-]", r"^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$"
"""Texts that spreadsheets take for formulas (OWASP, *CSV Injection*), and the numbers among them."""
NAMES = (RUNS, METRICS, *TABLES)
"""The files that can be written: the list of runs, the metrics, and the tables of the records."""


def export(
    runs: Sequence[Run],
    directory: Path,
    kind: str = "csv",
    *,
    tables: Sequence[str] = (),
    force: bool = False,
    mask_addresses: bool = False,
) -> list[Path]:
    """Write one file per table into a directory; returns their paths. Without `tables`, all that a run has.

    With `mask_addresses`, hops have names in place of addresses (`masking`).

    Raises `InputError` for unknown formats and tables, and if a file already exists, unless `force` is set; and
    `OSError` if the disk is full.
    """
    _check(kind, tables)
    chosen = tables or [table for table in NAMES if table not in OPTIONAL_TABLES or _has_rows(runs, table)]
    files = {table: directory / f"{table}.{kind}" for table in dict.fromkeys(chosen)}
    names = masking.masks(runs) if mask_addresses and masking.TABLE in files else None
    with _staging(list(files.values()), directory, force) as staging:
        for table, file in files.items():
            frames = _frames(runs, table)
            if table == masking.TABLE and names is not None:
                frames = (masking.masked(frame, names) for frame in frames)
            _WRITERS[kind](frames, staging / file.name)
    return list(files.values())


def export_each(
    runs: Sequence[Run], directory: Path, kind: str, *, force: bool = False
) -> tuple[list[Path], list[str]]:
    """Write one file per run into a directory, in a format of `PER_RUN`; returns their paths, and what they lack.

    Raises `InputError` if a run does not fit the format, and if a file already exists, unless `force` is set.
    """
    from bufferscope.interop import flent

    assert kind in PER_RUN, "the caller has chosen a format with a file per run"
    files = {directory / flent.file_name(run): run for run in runs}
    notes: list[str] = []
    with _staging(list(files), directory, force) as staging:
        for file, run in files.items():
            notes += flent.write(run, staging / file.name)
    return list(files), notes


@contextmanager
def _staging(files: Sequence[Path], directory: Path, force: bool) -> Iterator[Path]:
    """A directory to write these files to; they get their names together if the block succeeds. Raises `InputError`."""
    there = [file for file in files if file.exists()]
    if there and not force:
        raise InputError(f"{there[0]}: already exists; --force replaces it, --out writes elsewhere")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        staging = directory / f"{PARTIAL}export-{secrets.token_hex(4)}"
        staging.mkdir()
    except OSError as error:
        raise InputError(f"{directory}: cannot write here: {error.strerror}") from None
    try:
        yield staging
        for file in files:
            (staging / file.name).replace(file)
    except OSError as error:
        number = error.errno or errno.EIO  # polars gives none
        if number in FULL:
            raise OSError(number, error.strerror or str(error), str(directory)) from None
        raise InputError(f"{error.filename or directory}: cannot write here: {error.strerror}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _has_rows(runs: Sequence[Run], table: str) -> bool:
    return any(run.meta["tables"].get(table) for run in runs)


def _check(kind: str, tables: Sequence[str]) -> None:
    if kind not in FORMATS:
        raise InputError(f"--format: found {kind!r}; allowed: {', '.join(ABOUT)}")
    for table in tables:
        if table not in NAMES:
            raise InputError(f"--table: found {table!r}{closest(table, NAMES)}; allowed: {', '.join(NAMES)}")


def _frames(runs: Sequence[Run], table: str) -> Iterator["pl.DataFrame"]:
    """A table of all runs in parts with the same columns; no run keeps its records in memory."""
    import polars as pl

    from bufferscope.metrics.batch import batches, run_type

    variation = Variation(runs)
    paths = [path for run in runs for path in run.settings]
    names = list(dict.fromkeys(["run", "experiment", "engine", "seed", *variation.keys, *paths]))
    kinds = {name: pl.Int64 if name == "seed" else pl.String for name in names}
    rows = [
        {**run.settings, **values, "run": run.id, "experiment": run.experiment, "engine": run.engine, "seed": run.seed}
        for run, values in zip(runs, variation.values, strict=True)
    ]
    told = pl.DataFrame([[row.get(name) for name in names] for row in rows], schema=kinds, orient="row")
    begin = 0
    for batch in batches(runs):
        own = runs[begin : begin + len(batch.runs)]
        part = _table(batch, own, table)
        which = told[begin:].select(pl.all(), index=pl.int_range(pl.len(), dtype=run_type()))
        begin += len(own)
        whole = part.select(pl.col("run").alias("index"), pl.exclude("run", *names))
        yield whole.join(which, on="index", maintain_order="left").select(*names, pl.exclude("index", *names))


def _table(batch: "Batch", runs: Sequence[Run], table: str) -> "pl.DataFrame":
    """A table of the runs of a batch; the column `run` is a run's index."""
    import polars as pl

    from bufferscope.metrics import definition
    from bufferscope.metrics.batch import run_type
    from bufferscope.metrics.tables import numbered

    if table == METRICS:
        metrics = numbered(runs)
        units = {name: known.unit if (known := definition(name)) else "" for name in metrics["metric"].unique()}
        return metrics.with_columns(unit=pl.col("metric").replace_strict(units, return_dtype=pl.String))
    if table == RUNS:
        rows = [{"run": index, **_about(run)} for index, run in enumerate(runs)]
        return pl.DataFrame(rows, schema_overrides={"run": run_type()})
    return batch.whole(table).collect()


def _about(run: Run) -> Mapping[str, object]:
    """A row about how a run was made."""
    meta = run.meta
    return {
        "title": str(meta["title"]),
        "engine_version": str(meta["engine_version"]),
        "kernel_release": str(meta["summary"].get("kernel") or ""),
        "duration_ns": int(run.scenario["duration_ns"]),
        "warmup_ns": int(run.scenario["warmup_ns"]),
        "sample_interval_ns": int(meta["sampling"]["achieved_ns"]),
        "mss_bytes": int(meta["mss_bytes"]),
        "started": str(meta["started"]),
        "wall_s": float(meta["wall_s"]),
        "bufferscope": str(meta["bufferscope"]),
        "overrides": " ".join(meta["overrides"]),
        "warnings": "; ".join(run.warnings),
        "path": str(run.path),
    }


def _write_csv(frames: Iterator["pl.DataFrame"], file: Path) -> None:
    """Comma-separated, in UTF-8, with a line of names; a null is an empty cell, and no text is a formula."""
    import polars as pl

    with file.open("wb") as out:
        for number, frame in enumerate(frames):
            plain = frame.with_columns(
                _without_formulas(name) for name in frame.columns if frame[name].dtype == pl.String
            )
            plain.rename(_plain_name).write_csv(out, include_header=number == 0)


def _without_formulas(name: str) -> "pl.Expr":
    """A column of texts, with an apostrophe before those that a spreadsheet would compute; numbers stay as they are."""
    import polars as pl

    text = pl.col(name)
    is_formula = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    return pl.when(is_formula).then(pl.concat_str(pl.lit("'"), text)).otherwise(text).alias(name)


def _plain_name(name: str) -> str:
    return f"'{name}" if re.match(FORMULA, name) else name


def _write_json(frames: Iterator["pl.DataFrame"], file: Path) -> None:
    """An array with one object for each row, each on its own line."""
    with file.open("wb") as out:
        out.write(b"[")
        first = True
        for frame in frames:
            first = _write_rows(frame, out, first)
        out.write(b"\n]\n")


def _write_rows(frame: "pl.DataFrame", out: BinaryIO, first: bool) -> bool:
    """Write a frame's rows, with a comma before all but the file's first; returns whether that is still to come."""
    for part in frame.iter_slices(50_000):
        for row in part.iter_rows(named=True):
            out.write((b"\n" if first else b",\n") + json.dumps(row, ensure_ascii=False).encode())
            first = False
    return first


def _write_parquet(frames: Iterator["pl.DataFrame"], file: Path) -> None:
    """Write part by part; polars then joins the parts without loading all of them into memory."""
    import polars as pl

    parts = file.with_suffix(".parts")
    parts.mkdir()
    names = []
    try:
        for number, frame in enumerate(frames):
            names.append(parts / f"{number}.parquet")
            frame.write_parquet(names[-1])
        pl.scan_parquet(names, glob=False).sink_parquet(file)
    except pl.exceptions.ComputeError as error:  # as polars reports what the system refuses, without its number
        raise OSError(errno.EIO, str(error).partition("\n")[0], str(file)) from None
    shutil.rmtree(parts)


_WRITERS = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}
