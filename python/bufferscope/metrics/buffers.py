"""The size of a path's buffers, as a test from outside infers it, and as it is.

Netalyzr (Kreibich et al., IMC 2010, section 5.2) infers a buffer's size as the sustained rate multiplied by the delay
that the load adds. This is the only module that computes it.
"""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, Query, query
from bufferscope.metrics.long import Measured
from bufferscope.metrics.records import RunRecords
from bufferscope.model.disciplines import PURE_LIMITS
from bufferscope.model.network import NANOSECONDS, Port, path, traffic_ends, traffic_named
from bufferscope.model.scenario import NetalyzrTraffic

KIB = 1024
HEADER_BYTES = 28
"""IPv4 and UDP."""
MS = 1_000_000
MBIT = 1_000_000
DIRECTIONS = ("down", "up")


COLUMNS = ("traffic", "direction", "idle_ns", "loaded_ns", "rate_bps")
SOURCE = "estimates: rate_bps, loaded_ns, idle_ns"
WITH_LIMIT = f"{SOURCE}; scenario: limit of the queue with the smallest rate"


def _added_ns() -> pl.Expr:
    return pl.col("loaded_ns") - pl.col("idle_ns")


def _inferred() -> pl.Expr:
    """The inferred size in bits times nanoseconds per second."""
    return pl.col("rate_bps") * _added_ns()


def _share() -> Measured:
    known = pl.when(pl.col("true_bytes").is_not_null())
    return known.then(_inferred()), 8 * NANOSECONDS * pl.col("true_bytes")


def _of(direction: str, way: str) -> Query:
    """The metrics of a direction of every test of the path's buffers."""

    def of_tests(batch: Batch) -> pl.LazyFrame:
        return batch.once(_estimates).filter(pl.col("direction") == direction)

    name = f"buffer.<traffic>.{direction}"
    return query(
        Metric(
            f"{name}_mbit",
            "Mbit/s",
            f"{way} Payload of a netalyzr test that made the round trip, per second of the measured half.",
            SOURCE,
            lambda: (pl.col("rate_bps"), MBIT),
            heading=f"<traffic>.{direction} (Mbit/s)",
        ),
        Metric(
            f"{name}_idle_ms",
            "ms",
            f"{way} Mean round-trip time without load.",
            SOURCE,
            lambda: (pl.col("idle_ns"), MS),
        ),
        Metric(
            f"{name}_added_ms",
            "ms",
            f"{way} Mean round-trip time that the load adds.",
            SOURCE,
            lambda: (_added_ns(), MS),
            heading=f"<traffic>.{direction} added (ms)",
        ),
        Metric(
            f"{name}_inferred_kib",
            "KiB",
            f"{way} The buffer as Netalyzr infers it: the rate multiplied by the time that the load adds.",
            SOURCE,
            lambda: (_inferred(), 8 * NANOSECONDS * KIB),
            heading=f"<traffic>.{direction} buffer (KiB)",
        ),
        Metric(
            f"{name}_true_kib",
            "KiB",
            f"{way} What the queue at the smallest rate holds, if it is tail drop.",
            WITH_LIMIT,
            lambda: (pl.col("true_bytes"), KIB),
        ),
        Metric(
            f"{name}_inferred_share",
            "",
            f"{way} The inferred buffer as a share of the true one.",
            WITH_LIMIT,
            _share,
        ),
        reads={"estimates": COLUMNS},
    )(of_tests)


def _estimates(batch: Batch) -> pl.LazyFrame:
    """What the tests estimate in each direction, and the true size of the buffer."""
    tests = batch.frame({"traffic": pl.String, "direction": pl.String, "true_bytes": pl.Int64}, _tests)
    return tests.join(batch.table("estimates", *COLUMNS), on=["run", "traffic", "direction"], maintain_order="left")


of_downloads = _of("down", "From the server:")
of_uploads = _of("up", "To the server:")


def true_bytes(port: Port, packet_bytes: int) -> int | None:
    """The bytes that a port's queue holds when it is full of such packets; None if its limit does not say that.

    A discipline that drops before its limit is reached has no size of this kind.
    """
    if port.queue["qdisc"] not in PURE_LIMITS:
        return None
    return port.limit_bytes if port.limit_packets is None else port.limit_packets * packet_bytes


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
