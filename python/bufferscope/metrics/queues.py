"""What stands in the ports: queue lengths, utilization, drops and marks, and which port the delay is spent in."""

from collections.abc import Iterator, Sequence

import polars as pl

from bufferscope.metrics.network import Port, ports
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import percentile
from bufferscope.metrics.window import Window

LAYERS = {"queue": "qdisc", "ring": "ring"}
"""Metric prefix of each of a port's layers."""
PERCENTILES = (50, 95)


def measure(run: RunRecords, percents: Sequence[int] = PERCENTILES) -> Iterator[tuple[str, float]]:
    """The metrics of every port that has a rate."""
    rated = [port for port in ports(run.scenario).values() if port.rate]
    window = Window.of(run)
    samples = window.rows(run.queues)
    yield from _utilizations(rated, samples)
    yield from delay_shares(rated, samples).items()
    yield from _drops_and_marks(rated, window.rows(run.drops))
    for prefix, layer in LAYERS.items():
        for port in rated:
            yield from _lengths(f"{prefix}.{port.name}", samples.filter(port=port.name, layer=layer), percents)


def delay_shares(rated: list[Port], samples: pl.DataFrame) -> dict[str, float]:
    """`delay_share.<port>` of each port; empty when nothing ever queued."""
    delays = {port.name: mean_delay_s(port, samples.filter(port=port.name)) for port in rated}
    total = sum(delays.values())
    return {f"delay_share.{name}": delay / total for name, delay in delays.items()} if total > 0 else {}


def mean_delay_s(port: Port, samples: pl.DataFrame) -> float:
    """Time-average of the time that the port's backlog, all layers together, takes to be sent."""
    backlog = samples.group_by("t_ns").agg(pl.col("bytes").sum()).sort("t_ns")
    seconds = backlog.join_asof(port.rates(), on="t_ns").select(pl.col("bytes") * 8 / pl.col("bits_per_second"))
    return _mean(seconds.to_series())


def _utilizations(rated: list[Port], samples: pl.DataFrame) -> Iterator[tuple[str, float]]:
    """Bits sent between the window's first and last sample over what the rate allows in that time."""
    for port in rated:
        own = samples.filter(port=port.name)
        has_ring = bool((own["layer"] == "ring").any())
        lowest = own.filter(layer="ring" if has_ring else "qdisc").sort("t_ns")
        if lowest.height < 2:
            continue
        start, end = lowest["t_ns"][0], lowest["t_ns"][-1]
        sent_bits = (lowest["sent_bytes"][-1] - lowest["sent_bytes"][0]) * 8
        yield f"utilization.{port.name}", sent_bits / port.capacity_bits(start, end)


def _drops_and_marks(rated: list[Port], drops: pl.DataFrame) -> Iterator[tuple[str, float]]:
    is_mark = pl.col("reason").str.ends_with("_mark")
    counts = drops.group_by("port").agg(is_mark.sum().alias("marks"), is_mark.not_().sum().alias("drops"))
    by_port = {row["port"]: row for row in counts.iter_rows(named=True)}
    for kind in ("drops", "marks"):
        for port in rated:
            yield f"{kind}.{port.name}", by_port.get(port.name, {}).get(kind, 0)


def _lengths(name: str, samples: pl.DataFrame, percents: Sequence[int]) -> Iterator[tuple[str, float]]:
    if samples.is_empty():
        return
    packets = samples["packets"].cast(pl.Float64)
    yield f"{name}.mean_packets", _mean(packets)
    for percent in percents:
        yield f"{name}.p{percent}_packets", percentile(packets.to_numpy(), percent)
    yield f"{name}.max_packets", float(packets.to_numpy().max())


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean()) if len(values) else 0.0
