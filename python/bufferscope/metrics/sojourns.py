"""How long packets stayed in a port's queueing discipline."""

from __future__ import annotations

from collections.abc import Sequence

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.stats.estimate import HUNDREDTHS, weighted_percentile_of

MS = 1e6


@query(
    Metric(
        "sojourn.<port>.p<N>_ms",
        "ms",
        "Percentile of the time that packets spent in the qdisc, to within 0.05 %.",
        "sojourns: sojourn_ns, packets (layer qdisc); seconds that begin in the window",
        lambda percent: (pl.col(f"p{percent}"), HUNDREDTHS * MS),
        percentiles=(50, 95, 99),
    ),
    reads={"sojourns": ("t_ns", "port", "layer", "sojourn_ns", "packets")},
    is_given_percents=True,
)
def of_packets(batch: Batch, percents: Sequence[int]) -> pl.LazyFrame:
    """The percentiles of every port from which packets left in the window."""
    rows = batch.rows("sojourns", "port", "layer", "sojourn_ns", "packets")
    rows = rows.filter(pl.col("layer") == "qdisc", pl.col("packets") > 0)
    found = (
        rows.group_by("run", "port", "sojourn_ns")
        .agg(pl.col("packets").sum())
        .sort("run", "port", "sojourn_ns")
        .group_by("run", "port")
        .agg(weighted_percentile_of("sojourn_ns", "packets", percent).alias(f"p{percent}") for percent in percents)
    )
    return batch.all_ports.join(found, on=["run", "port"], maintain_order="left")
