"""The loss of UDP flows, as their receivers count it."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import long
from bufferscope.metrics.window import gained
from bufferscope.model.network import traffic_named, traffic_of_flow


def measure(batch: Batch) -> Iterator[pl.LazyFrame]:
    """`loss.<traffic>_percent` of every udp entry with datagrams that arrived or were found missing in the window.

    Counted as iperf3 does: a datagram is lost if one with a higher number has arrived before it. So datagrams that were
    dropped at the end, with none after them, do not count.
    """
    entries = batch.frame(
        {"traffic": pl.String, "payload_bytes": pl.Int64},
        lambda run: [(entry["name"], entry["payload_bytes"]) for entry in traffic_named(run.scenario, "udp")],
    )
    samples = batch.table("flows", "t_ns", "flow", "lost", "delivered_bytes")
    grown = gained(samples, batch, "lost", "delivered_bytes").with_columns(traffic_of_flow())
    lost = pl.col("lost")
    found = grown.group_by("run", "traffic").agg(lost.sum(), pl.col("delivered_bytes").sum(), known=lost.count())
    wide = entries.join(found.filter(pl.col("known") > 0), on=["run", "traffic"], maintain_order="left")
    lost_bytes = pl.col("lost") * pl.col("payload_bytes")
    known_bytes = lost_bytes + pl.col("delivered_bytes")
    yield long(wide, {"loss.{}_percent": (pl.when(known_bytes > 0).then(100 * lost_bytes), known_bytes)}, "traffic")
