"""How far round-trip times are apart."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import ordered


@query(
    Metric(
        "spread.rtt_ms",
        "ms",
        "The longest minus the shortest round-trip time of the answered probes.",
        "probes: rtt_ns",
        lambda: (pl.col("longest") - pl.col("shortest"), 1e6),
        heading="RTT spread (ms)",
    ),
    Metric(
        "spread.p<N>_ms",
        "ms",
        "Percentile of the round-trip time above the shortest one.",
        "probes: rtt_ns",
        lambda percent: ordered(percent, 1e6),
        percentiles=(90,),
    ),
    reads={"probes": ("sent_ns", "rtt_ns")},
)
def of_answered(batch: Batch) -> pl.LazyFrame:
    """The answered probes of each run."""
    rtt = pl.col("rtt_ns")
    answered = batch.rows("probes", "rtt_ns", time="sent_ns").drop_nulls("rtt_ns")
    return answered.group_by("run").agg(longest=rtt.max(), shortest=rtt.min(), ordered=(rtt - rtt.min()).sort())
