"""Metrics in long frames: one row per run and metric."""

from collections.abc import Mapping

import polars as pl


def long(wide: pl.LazyFrame, metrics: Mapping[str, pl.Expr], place: str | None = None) -> pl.LazyFrame:
    """`run, metric, value`: for each row of `wide` the values of these metrics that are not null, in this order.

    `{}` in a metric's name stands for the row's port or traffic, which is in the column `place`.
    """
    names = [pl.lit(name) if place is None else pl.format(name, place) for name in metrics]
    values = [value.cast(pl.Float64) for value in metrics.values()]
    lists = wide.select("run", metric=pl.concat_list(names), value=pl.concat_list(values))
    return lists.explode("metric", "value").filter(pl.col("value").is_not_null())
