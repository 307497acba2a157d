"""Round-trip times of the probes."""

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from bufferscope.metrics.network import traffic_named
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import Samples, percentile
from bufferscope.metrics.window import Window

MS = 1e6
PERCENTILES = (5, 50, 95, 99)
_ON_DEMAND = re.compile(r"rtt\.p(\d{1,2}|100)_ms")


def rtts_ms(run: RunRecords) -> Samples:
    """The round-trip time of every probe sent in the window, in the order of sending; +inf for a lost one."""
    sent = Window.of(run).rows(run.probes, "sent_ns").sort("sent_ns")
    return sent.select(pl.col("rtt_ns").cast(pl.Float64).fill_null(float("inf")) / MS).to_series().to_numpy()


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """All `rtt.*` metrics of a run that probes; nothing for one that does not."""
    if not traffic_named(run.scenario, "ping"):
        return
    rtts = rtts_ms(run)
    answered = rtts[np.isfinite(rtts)]
    if len(answered):
        yield "rtt.mean_ms", float(answered.mean())
    if len(rtts):
        for percent in PERCENTILES:
            yield f"rtt.p{percent}_ms", percentile(rtts, percent)
    if len(answered):
        yield "rtt.max_ms", float(answered.max())
    yield "rtt.sent", len(rtts)
    yield "rtt.lost", len(rtts) - len(answered)
    yield "rtt.answered", len(answered)


def requested_percent(name: str) -> int | None:
    """N for a name `rtt.pN_ms` with N in 0..100."""
    match = _ON_DEMAND.fullmatch(name)
    return int(match[1]) if match else None


def measure_percentile(run: RunRecords, percent: int) -> float | None:
    """Any percentile of the round-trip time, if a probe was sent."""
    rtts = rtts_ms(run)
    return percentile(rtts, percent) if len(rtts) else None
