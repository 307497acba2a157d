"""Frames of several runs, with columns that distinguish the runs; and frames for pandas."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bufferscope.base.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from bufferscope.results.variation import Variation
    from bufferscope.store.run import Run

PANDAS = "python -m pip install pandas pyarrow"


def with_run_columns(frame: "pl.LazyFrame", runs: Sequence["Run"], variation: "Variation") -> "pl.LazyFrame":
    """A frame whose column `run` is an index into `runs`, with columns that distinguish the runs instead.

    They are `run`, `engine`, `seed` and the varying keys, and the frame's own columns follow. Settings are strings, as
    in experiment files (`100p`); they are null if a run's experiment has no such setting.
    """
    import polars as pl

    keys = [key for key in variation.keys if key != "engine"]
    texts = [[run.id, run.engine, *map(values.get, keys)] for run, values in zip(runs, variation.values, strict=True)]
    told = pl.DataFrame(texts, schema=dict.fromkeys(["run", "engine", *keys], pl.String), orient="row")
    told = told.with_columns(pl.Series("seed", [run.seed for run in runs], pl.Int64), index=pl.int_range(pl.len()))
    names = ["run", "engine", "seed", *keys]
    own = [name for name in frame.collect_schema() if name not in names]
    rows = frame.select(pl.col("run").cast(pl.Int64).alias("index"), *own)
    return rows.join(told.lazy(), on="index", maintain_order="left").select(*names, *own)


def to_pandas(frame: "pl.DataFrame") -> Any:
    """A pandas frame; integers that may be null keep their type (pandas' `Int64`) instead of becoming floats.

    Polars converts its frames by pyarrow. Raises `InputError`, with the command that installs pandas and pyarrow, if
    one of them is missing.
    """
    try:
        import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401
    except ImportError as error:
        raise InputError(f"a pandas frame needs {error.name}, which is not installed here: {PANDAS}") from None
    return frame.to_pandas().astype({name: pandas.Int64Dtype() for name in _integers(frame)})


def _integers(frame: "pl.DataFrame") -> list[str]:
    """The columns of whole numbers that have nulls."""
    return [name for name, kind in frame.schema.items() if kind.is_integer() and frame[name].null_count()]
