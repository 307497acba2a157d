"""Round-trip times of captured TCP connections."""

from collections.abc import Iterator, Sequence

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import long
from bufferscope.metrics.paths import COLUMNS, path_round_trips
from bufferscope.model.network import traffic_of_flow
from bufferscope.stats.estimate import HUNDREDTHS, percentile_of

MS = 1e6
PERCENTILES = (50, 95)


def measure(batch: Batch, percents: Sequence[int] = PERCENTILES) -> Iterator[pl.LazyFrame]:
    """`round_trip.<traffic>.*` of the runs that are captures."""
    if not any(run.meta["tables"].get("round_trips") for run in batch.runs):
        return
    rows = path_round_trips(batch.rows("round_trips", *COLUMNS[1:]), "run")
    rtt = pl.col("rtt_ns")
    found = rows.group_by("run", traffic_of_flow()).agg(ordered=rtt.sort(), max=rtt.max())
    wide = batch.traffic("tcp").join(found, on=["run", "traffic"], maintain_order="left")
    percentiles = {
        f"round_trip.{{}}.p{percent}_ms": (percentile_of(pl.col("ordered"), percent), HUNDREDTHS * MS)
        for percent in percents
    }
    yield long(wide, percentiles | {"round_trip.{}.max_ms": (pl.col("max"), MS)}, "traffic")
