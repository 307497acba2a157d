"""Metrics of ports: queue lengths, utilization, drops and marks, and each port's share of the queueing delay."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from bufferscope._core import DROP_REASONS
from bufferscope.metrics.capacity import Capacity, capacities
from bufferscope.metrics.network import Port, ports
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import percentile
from bufferscope.metrics.window import Window

LAYERS = {"queue": "qdisc", "ring": "ring"}
"""The metrics' prefixes, each with its layer of a port."""
Layers = Mapping[tuple[str, str], pl.DataFrame]
"""The samples of each port and layer; layers without samples are left out."""
PERCENTILES = (50, 95)
_MARKS = [reason for reason, marks in DROP_REASONS.items() if marks]
"""The reasons for which a packet is marked instead of dropped."""


def measure(run: RunRecords, percents: Sequence[int] = PERCENTILES) -> Iterator[tuple[str, float]]:
    """The metrics of every port that has a rate."""
    rated = [port for port in ports(run.scenario).values() if port.rate]
    window = Window.of(run)
    samples = window.rows(run.queues)
    layers: Layers = samples.partition_by("port", "layer", as_dict=True)
    capacity = capacities(run)
    yield from _utilizations(capacity, layers)
    yield from delay_shares(capacity, samples).items()
    yield from _drops_and_marks(rated, window.rows(run.drops))
    for prefix, layer in LAYERS.items():
        for port in rated:
            if (port.name, layer) in layers:
                yield from _lengths(f"{prefix}.{port.name}", layers[port.name, layer], percents)


def delay_shares(capacity: Mapping[str, Capacity], samples: pl.DataFrame) -> dict[str, float]:
    """`delay_share.<port>` of each port; empty if nothing ever queued."""
    delays = {port: mean_delay_s(own, samples.filter(port=port)) for port, own in capacity.items()}
    total = sum(delays.values())
    return {f"delay_share.{name}": delay / total for name, delay in delays.items()} if total > 0 else {}


def mean_delay_s(capacity: Capacity, samples: pl.DataFrame) -> float:
    """The mean over time of how long it takes to send a port's backlog in all layers."""
    backlog = samples.lazy().group_by("t_ns").agg(pl.col("bytes").sum()).sort("t_ns")
    rated = backlog.join_asof(capacity.steps.lazy(), on="t_ns")
    return _mean(rated.select(pl.col("bytes") * 8 / pl.col("rate_bps")).collect(engine="in-memory").to_series())


def _utilizations(capacity: Mapping[str, Capacity], layers: Layers) -> Iterator[tuple[str, float]]:
    """Bits sent between the first and the last sample of the window, divided by what the rate allows in that time."""
    for port, allowed in capacity.items():
        own = layers.get((port, "ring"), layers.get((port, "qdisc")))
        if own is None or own.height < 2:
            continue
        lowest = own.sort("t_ns")
        start, end = lowest["t_ns"][0], lowest["t_ns"][-1]
        sent_bits = (lowest["sent_bytes"][-1] - lowest["sent_bytes"][0]) * 8
        yield f"utilization.{port}", sent_bits / allowed.bits(start, end)


def _drops_and_marks(rated: list[Port], drops: pl.DataFrame) -> Iterator[tuple[str, float]]:
    is_mark = pl.col("reason").is_in(_MARKS)
    counts = drops.group_by("port").agg(is_mark.sum().alias("marks"), is_mark.not_().sum().alias("drops"))
    by_port = {row["port"]: row for row in counts.iter_rows(named=True)}
    for kind in ("drops", "marks"):
        for port in rated:
            yield f"{kind}.{port.name}", by_port.get(port.name, {}).get(kind, 0)


def _lengths(name: str, samples: pl.DataFrame, percents: Sequence[int]) -> Iterator[tuple[str, float]]:
    packets = samples["packets"].cast(pl.Float64)
    yield f"{name}.mean_packets", _mean(packets)
    for percent in percents:
        yield f"{name}.p{percent}_packets", percentile(packets.to_numpy(), percent)
    yield f"{name}.max_packets", float(packets.to_numpy().max())


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean()) if len(values) else 0.0
