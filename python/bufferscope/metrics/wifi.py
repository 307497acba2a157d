"""Metrics of ports on the air: their shares of the air time, and the size of their aggregates."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import Measured
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import ports

PORT = ["run", "port"]


def _airtime() -> Measured:
    airtime = pl.col("airtime_ns")
    total = airtime.sum().over("run", "network")
    return pl.when(total > 0).then(airtime), total


def _aggregate() -> Measured:
    sent = pl.col("transmissions")
    return pl.when(sent > 0).then(pl.col("sent_packets")), sent


@query(
    Metric(
        "airtime.<port>",
        "",
        "Time that the transmissions of a port on the air took, as a share of those of its whole Wi-Fi network; failed "
        "ones and preambles count, acknowledgements and waits do not.",
        "queues: airtime_ns (layer ring)",
        _airtime,
    ),
    Metric(
        "aggregate.<port>.mean_packets",
        "packets",
        "Packets that arrived, for each transmission of a port on the air.",
        "queues: sent_packets, transmissions (layer ring)",
        _aggregate,
    ),
    reads={"queues": ("t_ns", "port", "layer", "sent_packets", "airtime_ns", "transmissions")},
)
def of_radios(batch: Batch) -> pl.LazyFrame:
    """Every port on the air: its counters between the first and the last sample of the window."""
    time = pl.col("t_ns")
    counters = ("sent_packets", "airtime_ns", "transmissions")
    samples = batch.rows("queues", "port", "layer", *counters).filter(layer="ring")
    gains = {name: pl.col(name).get(time.arg_max()) - pl.col(name).get(time.arg_min()) for name in counters}
    gained = samples.group_by(PORT).agg(**gains)
    networks = batch.frame({"port": pl.String, "network": pl.Int64}, _networks)
    return networks.join(gained, on=PORT, how="inner", maintain_order="left")


def _networks(run: RunRecords) -> list[tuple[object, ...]]:
    """The ports on the air, in the file's order, each with the number of its network."""
    names = list(ports(run.scenario))
    return [
        (names[2 * station["link"] + side], number)
        for number, network in enumerate(run.scenario.get("wifi", []))
        for station in network["stations"]
        for side in (0, 1)
    ]
