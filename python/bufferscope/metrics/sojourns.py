"""How long packets stayed in a port's queueing discipline."""

from collections.abc import Iterator, Sequence

import polars as pl

from bufferscope.metrics.network import ports
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import weighted_percentile
from bufferscope.metrics.window import Window

PERCENTILES = (50, 95, 99)
MS = 1e6


def measure(run: RunRecords, percents: Sequence[int] = PERCENTILES) -> Iterator[tuple[str, float]]:
    """`sojourn.<port>.*` of every port from which packets left in the window."""
    rows = Window.of(run).rows(run.sojourns).filter(pl.col("layer") == "qdisc", pl.col("packets") > 0)
    by_port = rows.partition_by("port", as_dict=True)
    for port in ports(run.scenario).values():
        own = by_port.get((port.name,))
        if own is None:
            continue
        values, weights = own["sojourn_ns"].cast(pl.Float64).to_numpy() / MS, own["packets"].to_numpy()
        for percent in percents:
            yield f"sojourn.{port.name}.p{percent}_ms", weighted_percentile(values, weights, percent)
