"""Goodput: payload that arrived (for TCP: that was acknowledged) per second."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.network import traffic_named, traffic_of_flow
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import jain_index
from bufferscope.metrics.window import Window, gained

MBIT = 1e6


def deliveries(run: RunRecords) -> pl.DataFrame:
    """The bytes that each connection had delivered over time: `flow, t_ns, delivered_bytes`, sorted by time.

    If a connection ends between two samples, the samples lack its last bytes. The rows of the finished transfers add
    them, except for pages, which may come over several connections, and look-ups, which use none.
    """
    samples = run.flows.lazy().select("flow", "t_ns", "delivered_bytes")
    spread = [entry["name"] for entry in traffic_named(run.scenario, "web") if entry.get("objects")]
    look_ups = [entry["name"] for entry in traffic_named(run.scenario, "dns")]
    whole = run.transfers.lazy().filter(
        pl.col("finished_ns").is_not_null(), ~pl.col("traffic").is_in([*spread, *look_ups])
    )
    ends = whole.select("flow", pl.col("finished_ns").alias("t_ns"), pl.col("bytes").alias("delivered_bytes"))
    rows = pl.concat([samples, ends], how="vertical_relaxed").sort("t_ns", maintain_order=True)
    # The last byte arrives before its acknowledgement: the maximum keeps it from being counted twice.
    return rows.with_columns(pl.col("delivered_bytes").cum_max().over("flow")).collect(engine="in-memory")


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """All `goodput.*` metrics of a run with TCP or UDP flows."""
    entries = traffic_named(run.scenario, "tcp", "web", "udp", "bittorrent")
    window = Window.of(run)
    if not entries or window.seconds <= 0:
        return
    scale = 8 / window.seconds / MBIT
    flows = gained(deliveries(run), "delivered_bytes", "flow", window).with_columns(traffic_of_flow())
    yield "goodput.total_mbit", float(flows["delivered_bytes"].sum()) * scale
    for entry in entries:
        own = flows.filter(traffic=entry["name"])
        yield f"goodput.{entry['name']}_mbit", float(own["delivered_bytes"].sum()) * scale
    # If a flow makes several transfers, each over its own connection, these connections don't compete.
    bulk = [entry["name"] for entry in entries if entry["kind"] == "tcp" and entry.get("transfers", 1) == 1]
    shares = flows.filter(pl.col("traffic").is_in(bulk))["delivered_bytes"].to_list()
    if sum(shares) > 0:
        yield "goodput.jain", jain_index(shares)
