"""Metrics of ports: queue lengths, utilization, drops and marks, and each port's share of the queueing delay."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from bufferscope._core import DROP_REASONS
from bufferscope.metrics.batch import Batch, batches
from bufferscope.metrics.capacity import bits
from bufferscope.metrics.long import Measured, long, quotient
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS
from bufferscope.stats.estimate import HUNDREDTHS, percentile_of

LAYERS = {"queue": "qdisc", "ring": "ring", "stacked": "stacked"}
"""The metrics' prefixes, each with its layer of a port."""
PERCENTILES = (50, 95)
PORT = ["run", "port"]
_MARKS = [reason for reason, marks in DROP_REASONS.items() if marks]
"""The reasons for which a packet is marked instead of dropped."""


def measure(batch: Batch, percents: Sequence[int] = PERCENTILES) -> Iterator[pl.LazyFrame]:
    """The metrics of every port that has a rate."""
    yield _utilizations(batch)
    yield _delay_shares(batch)
    yield _ring_shares(batch)
    yield from _drops_and_marks(batch)
    yield from _lengths(batch, percents)


def mean_delays_s(runs: Sequence[RunRecords]) -> Iterator[dict[str, float]]:
    """For each run, by port with a recorded rate: the time average of how long the backlog takes to send."""
    for batch in batches(runs):
        found: list[dict[str, float]] = [{} for _ in batch.runs]
        for number, port, delay_s in _mean_delays(batch).collect(engine="in-memory").iter_rows():
            found[number][port] = delay_s
        yield from found


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


def _delay_shares(batch: Batch) -> pl.LazyFrame:
    """`delay_share.<port>` of each port; none if nothing ever queued."""
    delay = pl.col("delay_s")
    total = delay.sum().over("run")
    return long(_mean_delays(batch), {"delay_share.{}": (pl.when(total > 0).then(delay), total)}, "port")


def _ring_shares(batch: Batch) -> pl.LazyFrame:
    """`ring_share.<port>` of each port with a ring; none if nothing ever queued there."""
    ringed = batch.rows("queues", "port", "layer").filter(layer="ring").select(PORT).unique()
    in_ring = _mean_delays(batch, ["ring"]).join(ringed, on=PORT, how="semi")
    whole = _mean_delays(batch).rename({"delay_s": "total_s"})
    total = pl.col("total_s")
    found = in_ring.join(whole, on=PORT, how="left", maintain_order="left")
    return long(found, {"ring_share.{}": (pl.when(total > 0).then(pl.col("delay_s")), total)}, "port")


def _utilizations(batch: Batch) -> pl.LazyFrame:
    """Bits sent between the first and the last sample of the window, divided by what the rate allows in that time.

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
    found = rated.join(lowest.filter(pl.col("samples") >= 2), on=PORT, maintain_order="left")

    def capacity_bits(interval: Mapping[str, Any]) -> float:
        return bits(interval["times_ns"], interval["rates_bps"], interval["start_ns"], interval["end_ns"])

    interval = pl.struct("times_ns", "rates_bps", "start_ns", "end_ns")
    capacity = interval.map_elements(capacity_bits, return_dtype=pl.Float64)
    return long(found, {"utilization.{}": (pl.col("bits"), capacity)}, "port")


def _drops_and_marks(batch: Batch) -> Iterator[pl.LazyFrame]:
    is_mark = pl.col("reason").is_in(_MARKS)
    counts = batch.rows("drops", "port", "reason").group_by(PORT).agg(
        marks=is_mark.sum(), drops=is_mark.not_().sum(), first_ns=pl.col("t_ns").filter(is_mark.not_()).min()
    )  # fmt: skip
    found = batch.rated.join(counts, on=PORT, how="left", maintain_order="left")
    for kind in ("drops", "marks"):
        yield long(found, {f"{kind}.{{}}": pl.col(kind).fill_null(0)}, "port")
    yield long(found, {"first_drop.{}_s": (pl.col("first_ns"), NANOSECONDS)}, "port")


def _lengths(batch: Batch, percents: Sequence[int]) -> Iterator[pl.LazyFrame]:
    packets = pl.col("packets")
    samples = batch.rows("queues", "port", "layer", "packets").group_by(*PORT, "layer").agg(
        sum=packets.sum(), samples=pl.len(), max=packets.max(), ordered=packets.sort()
    )  # fmt: skip
    for prefix, layer in LAYERS.items():
        found = batch.rated.join(samples.filter(layer=layer), on=PORT, maintain_order="left")
        lengths: dict[str, Measured] = {
            "mean": (pl.col("sum"), pl.col("samples")),
            **{f"p{percent}": (percentile_of(pl.col("ordered"), percent), HUNDREDTHS) for percent in percents},
            "max": pl.col("max"),
        }
        yield long(found, {f"{prefix}.{{}}.{name}_packets": value for name, value in lengths.items()}, "port")
