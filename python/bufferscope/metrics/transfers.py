"""How long transfers took: of files over TCP, of pages in web traffic, and of other objects."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from bufferscope.metrics.network import NANOSECONDS, traffic_named
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import percentile
from bufferscope.metrics.window import Window

PERCENTILES = (95,)


def measure(run: RunRecords, percents: Sequence[int] = PERCENTILES) -> Iterator[tuple[str, float]]:
    """`transfer.<traffic>.*` of every traffic entry that began a transfer in the window."""
    begun = Window.of(run).rows(run.transfers, "started_ns")
    for entry in traffic_named(run.scenario):
        own = begun.filter(traffic=entry["name"])
        if not own.is_empty():
            yield from _times(f"transfer.{entry['name']}", own, percents)


def _times(name: str, transfers: pl.DataFrame, percents: Sequence[int]) -> Iterator[tuple[str, float]]:
    took = (pl.col("finished_ns") - pl.col("started_ns")).cast(pl.Float64).fill_null(float("inf")) / NANOSECONDS
    seconds = transfers.select(took).to_series().to_numpy()
    finished = seconds[np.isfinite(seconds)]
    if len(finished):
        yield f"{name}.mean_s", float(finished.mean())
    for percent in percents:
        yield f"{name}.p{percent}_s", percentile(seconds, percent)
    if len(finished):
        yield f"{name}.max_s", float(finished.max())
    yield f"{name}.unfinished", len(seconds) - len(finished)
