"""Metrics of TCP senders: retransmissions, windows, data in flight, and the time that data waited in send buffers."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, Query, query
from bufferscope.metrics.long import Measured
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import gained
from bufferscope.model.network import OVER_TCP, traffic_of_flow

MS = 1e6


def cwnd_packets(run: RunRecords) -> pl.Expr:
    """The congestion window in packets of the run's maximum segment size."""
    return (pl.col("cwnd_bytes") / int(run.meta["mss_bytes"])).alias("cwnd_packets")


BY_TRAFFIC = ["run", "traffic"]


@query(
    Metric(
        "retransmits.total",
        "segments",
        "Segments retransmitted, all connections together.",
        "flows: retransmits",
        lambda: pl.when(pl.col("known").fill_null(1) > 0).then(pl.col("retransmits").fill_null(0)),
        heading="retransmits",
    ),
    reads={"flows": ("t_ns", "flow", "retransmits")},
)
def of_all(batch: Batch) -> pl.LazyFrame:
    """The retransmissions of the runs with TCP.

    No sample: nothing was sent. Samples without a count: it is not known, as in the results of some programs.
    """
    samples = batch.table("flows", "t_ns", "flow", "retransmits")
    again = pl.col("retransmits")
    retransmits = gained(samples, batch, "retransmits").group_by("run").agg(again.sum(), known=again.count())
    return batch.having(*OVER_TCP).join(retransmits, on="run", how="left", maintain_order="left")


def _sizes(mean: Metric, largest: Metric, column: str) -> Query:
    """Two metrics of a column of bytes: over all samples of a source's connections, in packets."""

    def of_samples(batch: Batch) -> pl.LazyFrame:
        size = pl.col(column)
        segments = batch.frame({"mss_bytes": pl.Int64}, lambda run: [(run.meta["mss_bytes"],)])
        flows = batch.rows("flows", "flow", column).group_by("run", "flow").agg(
            size=size.sum(), samples=size.count(), max=size.max()
        )  # fmt: skip
        found = flows.group_by("run", traffic_of_flow()).agg(pl.col("size", "samples").sum(), pl.col("max").max())
        wide = batch.traffic(*OVER_TCP).join(found, on=BY_TRAFFIC, maintain_order="left")
        return wide.join(segments, on="run", maintain_order="left")

    return query(mean, largest, reads={"flows": ("t_ns", "flow", column)})(of_samples)


def _mean_size() -> Measured:
    return pl.when(pl.col("samples") > 0).then(pl.col("size")), pl.col("mss_bytes") * pl.col("samples")


def _largest_size() -> Measured:
    return pl.col("max"), pl.col("mss_bytes")


CWND = "flows: cwnd_bytes; run: mss_bytes"
of_windows = _sizes(
    Metric(
        "cwnd.<traffic>.mean_packets",
        "packets",
        "Mean congestion window of a connection, over the samples.",
        CWND,
        _mean_size,
    ),
    Metric(
        "cwnd.<traffic>.max_packets",
        "packets",
        "Largest congestion window found by a sample.",
        CWND,
        _largest_size,
    ),
    "cwnd_bytes",
)
IN_FLIGHT = "flows: inflight_bytes; run: mss_bytes"
of_data_in_flight = _sizes(
    Metric(
        "inflight.<traffic>.mean_packets",
        "packets",
        "Mean amount of data in flight of a connection, over the samples.",
        IN_FLIGHT,
        _mean_size,
    ),
    Metric(
        "inflight.<traffic>.max_packets",
        "packets",
        "Most data in flight found by a sample.",
        IN_FLIGHT,
        _largest_size,
    ),
    "inflight_bytes",
)


def _wait() -> Measured:
    known = pl.when((pl.col("delivered_bytes") != 0) & (pl.col("intervals") > 0))
    twice_sent = pl.col("delivered_bytes") * 2
    return known.then(pl.col("byte_ns")), twice_sent * MS


@query(
    Metric(
        "unsent.<traffic>_ms",
        "ms",
        "Time that data waited in the send buffers before it was sent, by Little's law.",
        "flows: notsent_bytes, delivered_bytes",
        _wait,
    ),
    reads={"flows": ("t_ns", "flow", "notsent_bytes", "delivered_bytes")},
)
def of_send_buffers(batch: Batch) -> pl.LazyFrame:
    """The data that each entry sent, and for how long it had waited."""
    sent = gained(batch.table("flows", "t_ns", "flow", "delivered_bytes"), batch, "delivered_bytes")
    waits = sent.join(_waits(batch), on=["run", "flow"], how="left").group_by("run", traffic_of_flow())
    unsent = waits.agg(pl.col("delivered_bytes").sum(), pl.col("byte_ns").sum(), pl.col("intervals").sum())
    return batch.traffic("tcp").join(unsent, on=BY_TRAFFIC, maintain_order="left")


@query(
    Metric(
        "rwnd.<traffic>.max_bytes",
        "bytes",
        "Largest window that a receiver had advertised when a sample was taken.",
        "flows: rwnd_bytes",
        lambda: pl.col("rwnd_bytes"),
    ),
    Metric(
        "rwnd.<traffic>.limited_percent",
        "%",
        "Part of the time with data to send or to be acknowledged in which the receiver's window was the limit; all "
        "connections together.",
        "flows: rwnd_limited_ns, busy_ns",
        lambda: (pl.when(pl.col("busy_ns") > 0).then(pl.col("rwnd_limited_ns") * 100), pl.col("busy_ns")),
    ),
    reads={"flows": ("t_ns", "flow", "rwnd_bytes", "busy_ns", "rwnd_limited_ns")},
)
def of_receivers(batch: Batch) -> pl.LazyFrame:
    """The receivers' windows, and for how long they were the limit."""
    largest = (
        batch.rows("flows", "flow", "rwnd_bytes").group_by("run", traffic_of_flow()).agg(pl.col("rwnd_bytes").max())
    )
    times = ("busy_ns", "rwnd_limited_ns")
    spent = gained(batch.table("flows", "t_ns", "flow", *times), batch, *times)
    spent = spent.group_by("run", traffic_of_flow()).agg(pl.col(times).sum())
    wide = batch.traffic(*OVER_TCP)
    for found in (largest, spent):
        wide = wide.join(found, on=BY_TRAFFIC, how="left", maintain_order="left")
    return wide


def _waits(batch: Batch) -> pl.LazyFrame:
    """Twice the time integral of the bytes that wait to be sent, by the trapezoidal rule: `run, flow, byte_ns`.

    By Little's law, this integral divided by the bytes sent is the mean time that they waited. Flows come and go, and
    engines need not sample all at the same time, so each flow has its own `intervals`.
    """
    samples = batch.rows("flows", "flow", "notsent_bytes").sort("t_ns", maintain_order=True)
    waiting = pl.col("notsent_bytes")
    doubled = (waiting + waiting.shift()).cast(pl.Int128) * pl.col("t_ns").diff()
    return samples.group_by("run", "flow").agg(byte_ns=doubled.sum(), intervals=doubled.count())
