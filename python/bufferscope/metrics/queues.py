"""Metrics of ports: queue lengths, utilization, drops and marks, and each port's share of the queueing delay."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from bufferscope._core import DROP_REASONS
from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch, batches
from bufferscope.metrics.capacity import bits
from bufferscope.metrics.declaring import Metric, Query, query
from bufferscope.metrics.kept import each_once
from bufferscope.metrics.long import Measured, ordered, quotient
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS

LAYERS = {"queue": "qdisc", "ring": "ring", "stacked": "stacked"}
"""The metrics' prefixes, each with its layer of a port."""
PORT = ["run", "port"]
_MARKS = [reason for reason, marks in DROP_REASONS.items() if marks]
"""The reasons for which a packet is marked instead of dropped."""


BACKLOG = "queues: bytes (all layers); capacity: rate_bps"
OF_BACKLOG = {"queues": ("t_ns", "port", "layer", "bytes"), "capacity": ("t_ns", "port", "rate_bps")}


def _capacity_bits(interval: Mapping[str, Any]) -> float:
    return bits(interval["times_ns"], interval["rates_bps"], interval["start_ns"], interval["end_ns"])


def _utilization() -> Measured:
    interval = pl.struct("times_ns", "rates_bps", "start_ns", "end_ns")
    return pl.col("bits"), interval.map_elements(_capacity_bits, return_dtype=pl.Float64)


@query(
    Metric(
        "utilization.<port>",
        "",
        "Bits sent, link layer included, as a share of what the rate allows.",
        "queues: sent_bytes; capacity: rate_bps",
        _utilization,
    ),
    reads={"queues": ("t_ns", "port", "layer", "sent_bytes"), "capacity": ("t_ns", "port", "rate_bps")},
)
def of_links(batch: Batch) -> pl.LazyFrame:
    """Bits sent between the first and the last sample of the window, and the rates in that time.

    If a port has a ring, its counters are those of the ring.
    """
    order = {"ring": 0, "qdisc": 1, "stacked": 2}
    time, sent = pl.col("t_ns"), pl.col("sent_bytes")
    samples = batch.rows("queues", "port", "layer", "sent_bytes").group_by(*PORT, "layer").agg(
        start_ns=time.min(),
        end_ns=time.max(),
        bits=(sent.get(time.arg_max()) - sent.get(time.arg_min())) * 8,
        samples=pl.len(),
    )  # fmt: skip
    ordered = samples.sort(pl.col("layer").replace_strict(order, return_dtype=pl.Int8))
    lowest = ordered.unique(PORT, keep="first", maintain_order=True)
    rates = batch.rates.group_by(PORT, maintain_order=True).agg(times_ns="t_ns", rates_bps="rate_bps")
    rated = batch.rated.join(rates, on=PORT, maintain_order="left")
    return rated.join(lowest.filter(pl.col("samples") >= 2), on=PORT, maintain_order="left")


def _delay_share() -> Measured:
    delay = pl.col("delay_s")
    total = delay.sum().over("run")
    return pl.when(total > 0).then(delay), total


@query(
    Metric(
        "delay_share.<port>",
        "",
        "Time-average of backlog / rate, as a share of the sum over all ports: the part of the queueing delay that "
        "arises here.",
        BACKLOG,
        _delay_share,
    ),
    reads=OF_BACKLOG,
)
def of_delays(batch: Batch) -> pl.LazyFrame:
    """The delay of each port; the shares are null if nothing ever queued."""
    return _mean_delays(batch)


def _ring_share() -> Measured:
    total = pl.col("total_s")
    return pl.when(total > 0).then(pl.col("delay_s")), total


@query(
    Metric(
        "ring_share.<port>",
        "",
        "Time-average of the ring's backlog, as a share of that of all the port's layers: the part of the port's "
        "queueing delay that arises in the driver's ring.",
        BACKLOG,
        _ring_share,
    ),
    reads=OF_BACKLOG,
)
def of_rings(batch: Batch) -> pl.LazyFrame:
    """The delay of each port with a ring, and in its ring; the shares are null if nothing ever queued there."""
    ringed = batch.rows("queues", "port", "layer").filter(layer="ring").select(PORT).unique()
    in_ring = _mean_delays(batch, ["ring"]).join(ringed, on=PORT, how="semi")
    whole = _mean_delays(batch).rename({"delay_s": "total_s"})
    return in_ring.join(whole, on=PORT, how="left", maintain_order="left")


def _counts(batch: Batch) -> pl.LazyFrame:
    """The packets dropped and marked at every port that has a rate, and the time of the first drop."""
    is_mark = pl.col("reason").is_in(_MARKS)
    counts = batch.rows("drops", "port", "reason").group_by(PORT).agg(
        marks=is_mark.sum(), drops=is_mark.not_().sum(), first_ns=pl.col("t_ns").filter(is_mark.not_()).min()
    )  # fmt: skip
    return batch.rated.join(counts, on=PORT, how="left", maintain_order="left")


of_drops = query(
    Metric(
        "drops.<port>",
        "packets",
        "Packets dropped, all layers and reasons.",
        "drops: reason",
        lambda: pl.col("drops").fill_null(0),
    ),
    reads={"drops": ("t_ns", "port", "reason")},
)(_counts)
of_marks = query(
    Metric(
        "marks.<port>",
        "packets",
        "Packets marked CE (ECN, congestion experienced).",
        "drops: reason",
        lambda: pl.col("marks").fill_null(0),
    ),
    reads={"drops": ("t_ns", "port", "reason")},
)(_counts)
of_first_drops = query(
    Metric(
        "first_drop.<port>_s",
        "s",
        "When the first packet was dropped; none if nothing was.",
        "drops: t_ns, reason",
        lambda: (pl.col("first_ns"), NANOSECONDS),
    ),
    reads={"drops": ("t_ns", "port", "reason")},
)(_counts)


def _samples(batch: Batch) -> pl.LazyFrame:
    """The samples of every layer of a port."""
    packets = pl.col("packets")
    return batch.rows("queues", "port", "layer", "packets").group_by(*PORT, "layer").agg(
        sum=packets.sum(), samples=pl.len(), max=packets.max(), ordered=packets.sort()
    )  # fmt: skip


def _lengths(prefix: str, layer: str) -> Query:
    """The metrics of a layer of every port that has a rate."""
    source = f"queues: packets (layer {layer})"

    def of_layer(batch: Batch) -> pl.LazyFrame:
        own = batch.once(_samples).filter(layer=layer)
        return batch.rated.join(own, on=PORT, maintain_order="left")

    return query(
        Metric(
            f"{prefix}.<port>.mean_packets",
            "packets",
            f"Mean number of packets in the {layer}, over the samples.",
            source,
            lambda: (pl.col("sum"), pl.col("samples")),
        ),
        Metric(
            f"{prefix}.<port>.p<N>_packets",
            "packets",
            f"Percentile of the number of packets in the {layer}, over the samples.",
            source,
            ordered,
            percentiles=(50, 95),
        ),
        Metric(
            f"{prefix}.<port>.max_packets",
            "packets",
            f"Largest number of packets found in the {layer} by a sample.",
            source,
            lambda: pl.col("max"),
        ),
        reads={"queues": ("t_ns", "port", "layer", "packets")},
    )(of_layer)


of_queues, of_full_rings, of_stacked = (_lengths(*each) for each in LAYERS.items())


def mean_delays_s(runs: Sequence[RunRecords]) -> Iterator[dict[str, float]]:
    """For each run, by port with a recorded rate: the time average of how long the backlog takes to send."""
    for batch in batches(runs):
        yield from each_once(mean_delays_s, batch.runs, partial(_mean_delays_s, batch))


def _mean_delays_s(batch: Batch) -> list[dict[str, float]]:
    found: list[dict[str, float]] = [{} for _ in batch.runs]
    for number, port, delay_s in _mean_delays(batch).collect(engine="in-memory").iter_rows():
        found[number][port] = delay_s
    return found


def _mean_delays(batch: Batch, layers: Sequence[str] = tuple(LAYERS.values())) -> pl.LazyFrame:
    """The time average of how long the backlog of these layers takes to send: `run, port, delay_s`.

    0 for a port without samples. Samples in an outage, when nothing can be sent, are left out.
    """
    rates = batch.rates.with_columns(step=pl.col("t_ns")).sort("t_ns")
    samples = batch.rows("queues", "port", "layer", "bytes").filter(pl.col("layer").is_in(layers)).drop("layer")
    joined = samples.sort("t_ns").join_asof(rates, on="t_ns", by=PORT, check_sortedness=False)
    at_rate = joined.filter(pl.col("rate_bps") > 0)
    backlogs = at_rate.group_by(*PORT, "step").agg(pl.col("bytes").sum(), pl.col("rate_bps").first())
    seconds = quotient(pl.col("bytes") * 8, pl.col("rate_bps"))
    sums = backlogs.sort("step").with_columns(seconds.alias("delay_s")).group_by(PORT).agg(pl.col("delay_s"))
    in_order = pl.col("delay_s").map_elements(math.fsum, return_dtype=pl.Float64)
    times = at_rate.group_by(PORT).agg(times=pl.col("t_ns").n_unique())
    delays = sums.join(times, on=PORT).select(*PORT, quotient(in_order, pl.col("times")).alias("delay_s"))
    known = batch.rated.join(batch.rates, on=PORT, how="semi")
    found = known.join(delays, on=PORT, how="left", maintain_order="left")
    return found.with_columns(pl.col("delay_s").fill_null(0.0))
