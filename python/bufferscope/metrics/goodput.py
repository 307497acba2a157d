"""Goodput: payload that arrived (for TCP: that was acknowledged) per second."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import Measured
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import gained
from bufferscope.model.network import CARRYING, NANOSECONDS, groups, traffic_of_flow
from bufferscope.stats.estimate import jain_index

MBIT = 1e6


def deliveries(run: RunRecords) -> pl.DataFrame:
    """The bytes that each connection has delivered, over time: `flow, t_ns, delivered_bytes`, sorted by time."""
    rows = _deliveries(Batch([run])).drop("run").sort("t_ns", maintain_order=True)
    # The last byte arrives before its acknowledgement: the maximum keeps it from being counted twice.
    return rows.with_columns(pl.col("delivered_bytes").cum_max().over("flow")).collect(engine="in-memory")


SOURCE = "flows: delivered_bytes; transfers: finished_ns, bytes"
READS = {
    "flows": ("flow", "t_ns", "delivered_bytes"),
    "transfers": ("traffic", "flow", "finished_ns", "bytes"),
}
BY_TRAFFIC = ["run", "traffic"]


def _rate() -> Measured:
    # A byte per nanosecond is 8000 Mbit/s.
    return pl.col("delivered_bytes").fill_null(0) * round(8 * NANOSECONDS / MBIT), pl.col("window_ns")


def _windows(batch: Batch) -> pl.LazyFrame:
    """The length of each run's window, unless it is 0: `run, window_ns`."""
    lengths = batch.windows.select("run", window_ns=pl.col("end_ns") - pl.col("start_ns"))
    return lengths.filter(pl.col("window_ns") > 0)


def _entries(batch: Batch) -> pl.LazyFrame:
    """The entries that carry data: `run, traffic, window_ns`."""
    return batch.traffic(*CARRYING).join(_windows(batch), on="run", maintain_order="left")


@query(
    Metric(
        "goodput.total_mbit",
        "Mbit/s",
        "Payload acknowledged (for udp, arrived) per second, all flows of tcp, web, video, bittorrent and udp.",
        SOURCE,
        _rate,
        heading="goodput (Mbit/s)",
    ),
    reads=READS,
)
def of_all(batch: Batch) -> pl.LazyFrame:
    """All flows of a run with TCP or UDP together."""
    total = gains(batch).group_by("run").agg(pl.col("delivered_bytes").sum())
    runs = _entries(batch).select("run", "window_ns").unique(maintain_order=True)
    return runs.join(total, on="run", how="left")


@query(
    Metric(
        "goodput.<traffic>_mbit",
        "Mbit/s",
        "Payload acknowledged to (for udp, arrived from) the flows of a traffic entry, per second; also of all parts "
        "of an entry that is a test, or of those in one direction.",
        SOURCE,
        _rate,
        heading="<traffic> (Mbit/s)",
    ),
    reads=READS,
)
def of_each(batch: Batch) -> pl.LazyFrame:
    """The flows of each entry, then those of each group of entries that are parts of a test."""
    delivered = pl.col("delivered_bytes")
    own = gains(batch).group_by(BY_TRAFFIC).agg(delivered.sum())
    entries = _entries(batch).join(own, on=BY_TRAFFIC, how="left", maintain_order="left")
    members = batch.frame(
        {"group": pl.String, "traffic": pl.String},
        lambda run: [(group, part) for group, parts in groups(run.scenario, *CARRYING).items() for part in parts],
    )
    shared = members.join(own, on=BY_TRAFFIC, how="left", maintain_order="left")
    together = shared.group_by("run", "group", maintain_order=True).agg(delivered.sum())
    tests = together.rename({"group": "traffic"}).join(_windows(batch), on="run", maintain_order="left")
    columns = (*BY_TRAFFIC, "window_ns", "delivered_bytes")
    return pl.concat([entries.select(columns), tests.select(columns)])


def _jain() -> Measured:
    return pl.col("delivered_bytes").map_elements(lambda shares: jain_index(shares.to_list()), return_dtype=pl.Float64)


@query(
    Metric(
        "goodput.jain",
        "",
        "Jain's fairness index of the goodput of the bulk TCP connections that were established: 1 is equal.",
        SOURCE,
        _jain,
        heading="Jain's index",
    ),
    reads=READS,
)
def of_bulk(batch: Batch) -> pl.LazyFrame:
    """The shares of the connections of each run, if any data came."""
    # If a flow makes several transfers, each over its own connection, these connections don't compete.
    bulk = batch.traffic("tcp", only=lambda entry: entry.get("transfers", 1) == 1)
    competing = gains(batch).join(bulk.join(_windows(batch), on="run"), on=BY_TRAFFIC, how="semi")
    shares = competing.group_by("run").agg(pl.col("delivered_bytes"))
    return shares.filter(pl.col("delivered_bytes").list.sum() > 0)


def gains(batch: Batch) -> pl.LazyFrame:
    """The payload that each flow delivered in its run's window: `run, flow, delivered_bytes, traffic`."""
    return gained(_deliveries(batch), batch, "delivered_bytes").with_columns(traffic_of_flow())


def _deliveries(batch: Batch) -> pl.LazyFrame:
    """The samples of the connections and the ends of their transfers: `run, flow, t_ns, delivered_bytes`.

    If a connection ends between two samples, the samples lack its last bytes. The rows of the finished transfers add
    them, except for pages, which may come over several connections, for segments of videos, of which a connection
    carries many, and for look-ups, which use none.
    """
    samples = batch.table("flows", "flow", "t_ns", "delivered_bytes")
    others = batch.traffic(
        "web", "video", "dns", only=lambda entry: entry["kind"] != "web" or bool(entry.get("objects"))
    )
    finished = batch.table("transfers", "traffic", "flow", "finished_ns", "bytes").drop_nulls("finished_ns")
    whole = finished.join(others, on=["run", "traffic"], how="anti")
    ends = whole.select("run", "flow", t_ns="finished_ns", delivered_bytes="bytes")
    return pl.concat([samples, ends], how="vertical_relaxed")
