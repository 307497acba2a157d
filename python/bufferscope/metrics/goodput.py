"""Goodput: payload that arrived (for TCP: that was acknowledged) per second."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import long
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


def measure(batch: Batch) -> Iterator[pl.LazyFrame]:
    """All `goodput.*` metrics of the runs with TCP or UDP flows."""
    delivered, by_traffic = pl.col("delivered_bytes"), ["run", "traffic"]
    windows = batch.windows.select("run", window_ns=pl.col("end_ns") - pl.col("start_ns")).filter(
        pl.col("window_ns") > 0
    )
    entries = batch.traffic(*CARRYING).join(windows, on="run", maintain_order="left")
    # A byte per nanosecond is 8000 Mbit/s.
    rate = delivered.fill_null(0) * round(8 * NANOSECONDS / MBIT), pl.col("window_ns")
    flows = gains(batch)

    total = flows.group_by("run").agg(delivered.sum())
    runs = entries.select("run", "window_ns").unique(maintain_order=True).join(total, on="run", how="left")
    yield long(runs, {"goodput.total_mbit": rate})

    own = flows.group_by(by_traffic).agg(delivered.sum())
    yield long(
        entries.join(own, on=by_traffic, how="left", maintain_order="left"), {"goodput.{}_mbit": rate}, "traffic"
    )

    members = batch.frame(
        {"group": pl.String, "traffic": pl.String},
        lambda run: [(group, part) for group, parts in groups(run.scenario, *CARRYING).items() for part in parts],
    )
    shared = members.join(own, on=by_traffic, how="left", maintain_order="left")
    together = shared.group_by("run", "group", maintain_order=True).agg(delivered.sum())
    yield long(together.join(windows, on="run", maintain_order="left"), {"goodput.{}_mbit": rate}, "group")

    # If a flow makes several transfers, each over its own connection, these connections don't compete.
    bulk = batch.traffic("tcp", only=lambda entry: entry.get("transfers", 1) == 1)
    shares = flows.join(bulk.join(windows, on="run"), on=by_traffic, how="semi").group_by("run").agg(delivered)
    jain = delivered.map_elements(lambda shares: jain_index(shares.to_list()), return_dtype=pl.Float64)
    yield long(shares.filter(delivered.list.sum() > 0), {"goodput.jain": jain})


def gains(batch: Batch) -> pl.LazyFrame:
    """The payload that each flow delivered in its run's window: `run, flow, delivered_bytes, traffic`."""
    return gained(_deliveries(batch), batch, "delivered_bytes").with_columns(traffic_of_flow())


def _deliveries(batch: Batch) -> pl.LazyFrame:
    """The samples of the connections and the ends of their transfers: `run, flow, t_ns, delivered_bytes`.

    If a connection ends between two samples, the samples lack its last bytes. The rows of the finished transfers add
    them, except for pages, which may come over several connections, and look-ups, which use none.
    """
    samples = batch.table("flows", "flow", "t_ns", "delivered_bytes")
    others = batch.traffic("web", "dns", only=lambda entry: entry["kind"] == "dns" or bool(entry.get("objects")))
    finished = batch.table("transfers", "traffic", "flow", "finished_ns", "bytes").drop_nulls("finished_ns")
    whole = finished.join(others, on=["run", "traffic"], how="anti")
    ends = whole.select("run", "flow", t_ns="finished_ns", delivered_bytes="bytes")
    return pl.concat([samples, ends], how="vertical_relaxed")
