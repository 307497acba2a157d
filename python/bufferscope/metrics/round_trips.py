"""Round-trip times of captured TCP connections."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import ordered
from bufferscope.metrics.paths import COLUMNS, path_round_trips
from bufferscope.model.network import traffic_of_flow

MS = 1e6
SOURCE = "round_trips: half, method, rtt_ns"


@query(
    Metric(
        "round_trip.<traffic>.p<N>_ms",
        "ms",
        "Percentile of the round-trip times of the paths of captured TCP connections: of the half to the receiver if "
        "the capture was made at the sender, of the half to the sender if it was made at the receiver, of both "
        "together in between. In captures only.",
        SOURCE,
        lambda percent: ordered(percent, MS),
        percentiles=(50, 95),
        heading="<traffic> RTT p<N> (ms)",
    ),
    Metric(
        "round_trip.<traffic>.max_ms",
        "ms",
        "The longest such time.",
        SOURCE,
        lambda: (pl.col("max"), MS),
        heading="<traffic> RTT max (ms)",
    ),
    reads={"round_trips": COLUMNS},
)
def of_captures(batch: Batch) -> pl.LazyFrame | None:
    """The round trips of the runs that are captures; other runs have none."""
    if not any(run.meta["tables"].get("round_trips") for run in batch.runs):
        return None
    rows = path_round_trips(batch.rows("round_trips", *COLUMNS[1:]), "run")
    rtt = pl.col("rtt_ns")
    found = rows.group_by("run", traffic_of_flow()).agg(ordered=rtt.sort(), max=rtt.max())
    return batch.traffic("tcp").join(found, on=["run", "traffic"], maintain_order="left")
