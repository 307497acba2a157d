"""The size of a path's buffers, as a test from outside infers it, and as it is.

Netalyzr (Kreibich et al., IMC 2010, section 5.2) infers a buffer's size as the sustained rate multiplied by the delay
that the load adds. This is the only module that computes it.
"""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import Measured, long
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS, Port, path, traffic_ends, traffic_named
from bufferscope.model.scenario import NetalyzrTraffic

KIB = 1024
HEADER_BYTES = 28
"""IPv4 and UDP."""
MS = 1_000_000
MBIT = 1_000_000
DIRECTIONS = ("down", "up")


def measure(batch: Batch) -> Iterator[pl.LazyFrame]:
    """`buffer.<traffic>.*` of every test of the path's buffers."""
    tests = batch.frame({"traffic": pl.String, "direction": pl.String, "true_bytes": pl.Int64}, _tests)
    found = tests.join(batch.table("estimates", *_COLUMNS), on=["run", "traffic", "direction"], maintain_order="left")
    added_ns = pl.col("loaded_ns") - pl.col("idle_ns")
    known = pl.col("true_bytes").is_not_null()
    metrics: dict[str, Measured] = {
        "mbit": (pl.col("rate_bps"), MBIT),
        "idle_ms": (pl.col("idle_ns"), MS),
        "added_ms": (added_ns, MS),
        "inferred_kib": (pl.col("rate_bps") * added_ns, 8 * NANOSECONDS * KIB),
        "true_kib": (pl.col("true_bytes"), KIB),
        "inferred_share": (pl.when(known).then(pl.col("rate_bps") * added_ns), 8 * NANOSECONDS * pl.col("true_bytes")),
    }
    for direction in DIRECTIONS:
        own = found.filter(pl.col("direction") == direction)
        yield long(own, {f"buffer.{{}}.{direction}_{name}": value for name, value in metrics.items()}, "traffic")


_COLUMNS = ("traffic", "direction", "idle_ns", "loaded_ns", "rate_bps")


def true_bytes(port: Port, packet_bytes: int) -> int | None:
    """The bytes that a port's queue holds when it is full of such packets; None if its limit does not say that.

    A discipline that drops before its limit is reached has no size of this kind.
    """
    if port.queue["qdisc"] == "bfifo":
        return port.queue.get("limit_bytes")
    if port.queue["qdisc"] in ("pfifo", "pfifo_fast", "pfifo_head_drop") and port.limit_packets is not None:
        return port.limit_packets * packet_bytes
    return None


def bottleneck(run: RunRecords, entry: NetalyzrTraffic, direction: str) -> Port | None:
    """The port with the smallest rate in a direction of a test; None if no port has a rate."""
    client, server = traffic_ends(run.scenario, entry)
    ends = (client, server) if direction == "up" else (server, client)
    rated = [port for port in path(run.scenario, *ends) if port.rate]
    return min(rated, key=lambda port: port.rate[0].bits_per_second, default=None)


def _tests(run: RunRecords) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for entry in traffic_named(run.scenario, "netalyzr"):
        for direction in DIRECTIONS:
            port = bottleneck(run, entry, direction)
            size = port and true_bytes(port, port.link_layer.frame_bytes(entry["payload_bytes"] + HEADER_BYTES))
            rows.append((entry["name"], direction, size))
    return rows
