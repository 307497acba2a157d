"""Metrics in long frames: one row per run and metric."""

from collections.abc import Mapping

import polars as pl

Measured = pl.Expr | tuple[pl.Expr, float]
"""A metric's value, or a value and the number to divide it by."""


def long(wide: pl.LazyFrame, metrics: Mapping[str, Measured], place: str | None = None) -> pl.LazyFrame:
    """`run, metric, value`: for each row of `wide` the values of these metrics that are not null, in this order.

    `{}` in a metric's name stands for the row's port or traffic, which is in the column `place`. Polars divides a long
    column by a constant less exactly than a short one (it multiplies by the reciprocal), and a run's metrics must not
    depend on the runs beside it. So values are divided here, by a column.
    """
    names = [pl.lit(name) if place is None else pl.format(name, place) for name in metrics]
    pairs = [value if isinstance(value, tuple) else (value, 1) for value in metrics.values()]
    lists = wide.select(
        "run",
        metric=pl.concat_list(names),
        value=pl.concat_list([value.cast(pl.Float64) for value, _ in pairs]),
        unit=pl.concat_list([pl.lit(unit, pl.Float64) for _, unit in pairs]),
    )
    rows = lists.explode("metric", "value", "unit").filter(pl.col("value").is_not_null())
    return rows.select("run", "metric", value=pl.col("value") / pl.col("unit"))
