"""Metrics of TCP senders: retransmissions, windows, data in flight, and the time that data waited in send buffers."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import Measured, long
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import gained
from bufferscope.model.network import OVER_TCP, traffic_of_flow

MS = 1e6


def cwnd_packets(run: RunRecords) -> pl.Expr:
    """The congestion window in packets of the run's maximum segment size."""
    return (pl.col("cwnd_bytes") / int(run.meta["mss_bytes"])).alias("cwnd_packets")


def measure(batch: Batch) -> Iterator[pl.LazyFrame]:
    """`retransmits`, `cwnd`, `inflight`, `unsent` and `rwnd` of the runs with TCP."""
    samples = batch.table("flows", "t_ns", "flow", "retransmits")
    again = pl.col("retransmits")
    retransmits = gained(samples, batch, "retransmits").group_by("run").agg(again.sum(), known=again.count())
    runs = batch.having(*OVER_TCP).join(retransmits, on="run", how="left", maintain_order="left")
    # No sample: nothing was sent. Samples without a count: it is not known, as in the results of some programs.
    yield long(runs, {"retransmits.total": pl.when(pl.col("known").fill_null(1) > 0).then(again.fill_null(0))})

    for prefix, column in (("cwnd", "cwnd_bytes"), ("inflight", "inflight_bytes")):
        yield _sizes(batch, prefix, column)

    sent = gained(batch.table("flows", "t_ns", "flow", "delivered_bytes"), batch, "delivered_bytes")
    waits = sent.join(_waits(batch), on=["run", "flow"], how="left").group_by("run", traffic_of_flow())
    unsent = waits.agg(pl.col("delivered_bytes").sum(), pl.col("byte_ns").sum(), pl.col("intervals").sum())
    wide = batch.traffic("tcp").join(unsent, on=["run", "traffic"], maintain_order="left")
    known = pl.when((pl.col("delivered_bytes") != 0) & (pl.col("intervals") > 0))
    twice_sent = pl.col("delivered_bytes") * 2
    yield long(wide, {"unsent.{}_ms": (known.then(pl.col("byte_ns")), twice_sent * MS)}, "traffic")
    yield _advertised(batch)


def _advertised(batch: Batch) -> pl.LazyFrame:
    """`rwnd.<traffic>.*`: the receivers' windows, and for how long they were the limit."""
    largest = (
        batch.rows("flows", "flow", "rwnd_bytes").group_by("run", traffic_of_flow()).agg(pl.col("rwnd_bytes").max())
    )
    times = ("busy_ns", "rwnd_limited_ns")
    spent = gained(batch.table("flows", "t_ns", "flow", *times), batch, *times)
    spent = spent.group_by("run", traffic_of_flow()).agg(pl.col(times).sum())
    wide = batch.traffic(*OVER_TCP)
    for found in (largest, spent):
        wide = wide.join(found, on=["run", "traffic"], how="left", maintain_order="left")
    busy = pl.when(pl.col("busy_ns") > 0)
    windows: dict[str, Measured] = {
        "rwnd.{}.max_bytes": pl.col("rwnd_bytes"),
        "rwnd.{}.limited_percent": (busy.then(pl.col("rwnd_limited_ns") * 100), pl.col("busy_ns")),
    }
    return long(wide, windows, "traffic")


def _sizes(batch: Batch, prefix: str, column: str) -> pl.LazyFrame:
    """Mean and maximum of a column of bytes over all samples of a source's connections, in packets."""
    size, mss = pl.col(column), pl.col("mss_bytes")
    segments = batch.frame({"mss_bytes": pl.Int64}, lambda run: [(run.meta["mss_bytes"],)])
    flows = batch.rows("flows", "flow", column).group_by("run", "flow").agg(
        size.sum(), samples=size.count(), max=size.max()
    )  # fmt: skip
    found = flows.group_by("run", traffic_of_flow()).agg(size.sum(), pl.col("samples").sum(), pl.col("max").max())
    wide = batch.traffic(*OVER_TCP).join(found, on=["run", "traffic"], maintain_order="left")
    sampled = pl.when(pl.col("samples") > 0)
    sizes: dict[str, Measured] = {
        f"{prefix}.{{}}.mean_packets": (sampled.then(size), mss * pl.col("samples")),
        f"{prefix}.{{}}.max_packets": (pl.col("max"), mss),
    }
    return long(wide.join(segments, on="run", maintain_order="left"), sizes, "traffic")


def _waits(batch: Batch) -> pl.LazyFrame:
    """Twice the time integral of the bytes that wait to be sent, by the trapezoidal rule: `run, flow, byte_ns`.

    By Little's law, this integral divided by the bytes sent is the mean time that they waited. Flows come and go, and
    engines need not sample all at the same time, so each flow has its own `intervals`.
    """
    samples = batch.rows("flows", "flow", "notsent_bytes").sort("t_ns", maintain_order=True)
    waiting = pl.col("notsent_bytes")
    doubled = (waiting + waiting.shift()).cast(pl.Int128) * pl.col("t_ns").diff()
    return samples.group_by("run", "flow").agg(byte_ns=doubled.sum(), intervals=doubled.count())
