"""Frames of several runs, with columns that distinguish the runs; and frames for pandas."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bufferscope.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from bufferscope.store.run import Run
    from bufferscope.variation import Variation

PANDAS = "python -m pip install pandas pyarrow"


def told_apart(frames: Sequence["pl.DataFrame"], runs: Sequence["Run"], variation: "Variation") -> "pl.DataFrame":
    """Combine one frame of each run: `run`, `engine`, `seed` and the varying keys, then the frames' own columns.

    Settings are strings, as in experiment files (`100p`); they are null if a run's experiment has no such setting.
    """
    import polars as pl

    keys = [key for key in variation.keys if key != "engine"]
    told = []
    for frame, run, values in zip(frames, runs, variation.values, strict=True):
        texts = {"run": run.id, "engine": run.engine, **{key: values.get(key) for key in keys}}
        columns = {name: pl.lit(text, pl.String).alias(name) for name, text in texts.items()}
        columns["seed"] = pl.lit(run.seed, pl.Int64).alias("seed")
        own = [column for column in frame.columns if column not in columns]
        told.append(frame.select(*(columns[name] for name in ("run", "engine", "seed", *keys)), *own))
    return pl.concat(told)


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
