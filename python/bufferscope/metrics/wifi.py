"""Metrics of ports on the air: their shares of the air time, and the size of their aggregates."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import long
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import ports

PORT = ["run", "port"]


def measure(batch: Batch) -> Iterator[pl.LazyFrame]:
    """The metrics of every port on the air, from its counters between the first and the last sample of the window."""
    time = pl.col("t_ns")
    counters = ("sent_packets", "airtime_ns", "transmissions")
    samples = batch.rows("queues", "port", "layer", *counters).filter(layer="ring")
    gains = {name: pl.col(name).get(time.arg_max()) - pl.col(name).get(time.arg_min()) for name in counters}
    gained = samples.group_by(PORT).agg(**gains)
    networks = batch.frame({"port": pl.String, "network": pl.Int64}, _networks)
    found = networks.join(gained, on=PORT, how="inner", maintain_order="left")
    airtime, sent = pl.col("airtime_ns"), pl.col("transmissions")
    total = airtime.sum().over("run", "network")
    yield long(
        found,
        {
            "airtime.{}": (pl.when(total > 0).then(airtime), total),
            "aggregate.{}.mean_packets": (pl.when(sent > 0).then(pl.col("sent_packets")), sent),
        },
        "port",
    )


def _networks(run: RunRecords) -> list[tuple[object, ...]]:
    """The ports on the air, in the file's order, each with the number of its network."""
    names = list(ports(run.scenario))
    return [
        (names[2 * station["link"] + side], number)
        for number, network in enumerate(run.scenario.get("wifi", []))
        for station in network["stations"]
        for side in (0, 1)
    ]
