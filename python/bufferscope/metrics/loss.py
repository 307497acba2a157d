"""The loss of UDP flows, as their receivers count it."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import Measured
from bufferscope.metrics.window import gained
from bufferscope.model.network import traffic_named, traffic_of_flow


def _share() -> Measured:
    lost_bytes = pl.col("lost") * pl.col("payload_bytes")
    known_bytes = lost_bytes + pl.col("delivered_bytes")
    return pl.when(known_bytes > 0).then(100 * lost_bytes), known_bytes


@query(
    Metric(
        "loss.<traffic>_percent",
        "%",
        "Datagrams of a udp entry that the receiver found missing, as a share of the missing and the arrived ones.",
        "flows: lost, delivered_bytes; scenario: payload_bytes",
        _share,
        heading="<traffic> loss (%)",
    ),
    reads={"flows": ("t_ns", "flow", "lost", "delivered_bytes")},
)
def of_datagrams(batch: Batch) -> pl.LazyFrame:
    """The datagrams of every udp entry that arrived or were found missing in the window.

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
    return entries.join(found.filter(pl.col("known") > 0), on=["run", "traffic"], maintain_order="left")
