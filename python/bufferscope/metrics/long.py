"""Metrics in long frames: one row per run and metric, as a fraction.

Polars divides by a constant, or by a column of one row, less exactly than by a longer column: it multiplies by the
reciprocal. A run's metrics must not depend on the number of runs beside it, so queries return fractions of exact
numbers, and `divided` divides them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from bufferscope.base.libraries import polars as pl
from bufferscope.stats.estimate import HUNDREDTHS, percentile_of

Measured: TypeAlias = "pl.Expr | tuple[pl.Expr, pl.Expr | float]"
"""A metric's value, or its numerator and denominator."""


def long(wide: pl.LazyFrame, metrics: Mapping[str, Measured], instance: str | None = None) -> pl.LazyFrame:
    """`run, metric, value, unit`: these metrics of each row of `wide`, in this order, as fractions `value / unit`.

    A metric whose value is null is left out. `{}` in its name is replaced with the row's port or traffic, from the
    column `instance`.
    """
    names = [pl.lit(name) if instance is None else pl.format(name, instance) for name in metrics]
    pairs = [value if isinstance(value, tuple) else (value, 1) for value in metrics.values()]
    units = [unit if isinstance(unit, pl.Expr) else pl.lit(unit) for _, unit in pairs]
    lists = wide.select(
        "run",
        metric=pl.concat_list(names),
        value=pl.concat_list([value.cast(pl.Float64) for value, _ in pairs]),
        unit=pl.concat_list([unit.cast(pl.Float64) for unit in units]),
    )
    return lists.explode("metric", "value", "unit").filter(pl.col("value").is_not_null())


def ordered(percent: float, unit: float = 1) -> Measured:
    """A percentile of the column `ordered`, whose lists are in ascending order; their values are in parts of a unit."""
    return percentile_of(pl.col("ordered"), percent), HUNDREDTHS * unit


def quotient(value: pl.Expr, unit: pl.Expr) -> pl.Expr:
    """`value / unit`, row by row; null if one of them is."""
    return pl.map_batches([value, unit], lambda pair: divided(*pair), return_dtype=pl.Float64)


def divided(values: pl.Series, units: pl.Series) -> pl.Series:
    """Each value divided by its unit, exactly rounded: a second row makes a column of one row long enough for that."""
    long_values, long_units = (each.cast(pl.Float64).extend_constant(1.0, 1) for each in (values, units))
    return (long_values / long_units).head(len(values))
