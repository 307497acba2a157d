"""How long packets stayed in a port's queueing discipline."""

from collections.abc import Iterator, Sequence

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import long
from bufferscope.stats.estimate import HUNDREDTHS, weighted_percentile_of

PERCENTILES = (50, 95, 99)
MS = 1e6


def measure(batch: Batch, percents: Sequence[int] = PERCENTILES) -> Iterator[pl.LazyFrame]:
    """`sojourn.<port>.*` of every port from which packets left in the window."""
    rows = batch.rows("sojourns", "port", "layer", "sojourn_ns", "packets")
    rows = rows.filter(pl.col("layer") == "qdisc", pl.col("packets") > 0)
    names = {percent: f"p{percent}" for percent in percents}
    found = (
        rows.group_by("run", "port", "sojourn_ns")
        .agg(pl.col("packets").sum())
        .sort("run", "port", "sojourn_ns")
        .group_by("run", "port")
        .agg(weighted_percentile_of("sojourn_ns", "packets", percent).alias(name) for percent, name in names.items())
    )
    wide = batch.all_ports.join(found, on=["run", "port"], maintain_order="left")
    yield long(wide, {f"sojourn.{{}}.{name}_ms": (pl.col(name), HUNDREDTHS * MS) for name in names.values()}, "port")
