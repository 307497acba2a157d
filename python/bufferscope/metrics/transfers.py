"""How long transfers took: of files over TCP, of pages in web traffic, and of other objects."""

from collections.abc import Iterator, Sequence

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import Measured, long
from bufferscope.model.network import NANOSECONDS
from bufferscope.stats.estimate import HUNDREDTHS, percentile_of

PERCENTILES = (95,)


def measure(batch: Batch, percents: Sequence[int] = PERCENTILES) -> Iterator[pl.LazyFrame]:
    """`transfer.<traffic>.*` of every traffic entry that began a transfer in the window."""
    took = pl.col("took_ns")
    begun = batch.rows("transfers", "traffic", "finished_ns", time="started_ns")
    found = (
        begun.select("run", "traffic", took_ns=pl.col("finished_ns") - pl.col("started_ns"))
        .group_by("run", "traffic")
        .agg(begun=pl.len(), finished=took.count(), sum=took.sum(), max=took.max(), ordered=took.sort(nulls_last=True))
    )
    wide = batch.traffic().join(found, on=["run", "traffic"], maintain_order="left")
    finished = pl.col("finished").cast(pl.Int64)
    percentiles = {percent: percentile_of(pl.col("ordered"), percent) for percent in percents}
    times: dict[str, Measured] = {
        "mean_s": (pl.when(finished > 0).then(pl.col("sum")), finished * NANOSECONDS),
        **{f"p{percent}_s": (value, HUNDREDTHS * NANOSECONDS) for percent, value in percentiles.items()},
        "max_s": (pl.col("max"), NANOSECONDS),
        "unfinished": pl.col("begun") - finished,
    }
    yield long(wide, {f"transfer.{{}}.{name}": value for name, value in times.items()}, "traffic")
