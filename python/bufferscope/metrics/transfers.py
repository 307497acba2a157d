"""How long transfers took: of files over TCP, of pages in web traffic, and of other objects."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import ordered
from bufferscope.model.network import NANOSECONDS

SOURCE = "transfers: started_ns, finished_ns; started in the window"


def _finished() -> pl.Expr:
    return pl.col("finished").cast(pl.Int64)


@query(
    Metric(
        "transfer.<traffic>.mean_s",
        "s",
        "Mean time of the finished transfers, first packet to last byte.",
        SOURCE,
        lambda: (pl.when(_finished() > 0).then(pl.col("sum")), _finished() * NANOSECONDS),
        heading="<traffic> mean (s)",
    ),
    Metric(
        "transfer.<traffic>.p<N>_s",
        "s",
        "Percentile over all transfers begun, with unfinished ones counted as +inf.",
        SOURCE,
        lambda percent: ordered(percent, NANOSECONDS),
        percentiles=(95,),
        heading="<traffic> p<N> (s)",
    ),
    Metric(
        "transfer.<traffic>.max_s",
        "s",
        "Longest time of a finished transfer.",
        SOURCE,
        lambda: (pl.col("max"), NANOSECONDS),
    ),
    Metric(
        "transfer.<traffic>.unfinished",
        "transfers",
        "Transfers begun that were unfinished when the run ended.",
        SOURCE,
        lambda: pl.col("begun") - _finished(),
        heading="<traffic> unfinished",
    ),
    reads={"transfers": ("traffic", "started_ns", "finished_ns")},
)
def of_transfers(batch: Batch) -> pl.LazyFrame:
    """Every traffic entry that began a transfer in the window."""
    took = pl.col("took_ns")
    begun = batch.rows("transfers", "traffic", "finished_ns", time="started_ns")
    found = (
        begun.select("run", "traffic", took_ns=pl.col("finished_ns") - pl.col("started_ns"))
        .group_by("run", "traffic")
        .agg(begun=pl.len(), finished=took.count(), sum=took.sum(), max=took.max(), ordered=took.sort(nulls_last=True))
    )
    return batch.traffic().join(found, on=["run", "traffic"], maintain_order="left")
