"""Round-trip times of the probes."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from bufferscope.metrics.network import traffic_named
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import Samples, percentile
from bufferscope.metrics.window import Window

MS = 1e6
PERCENTILES = (5, 50, 95, 99)


def echoes(run: RunRecords) -> pl.DataFrame:
    """The rows of `probes` that a `ping` sent. Packets of calls are left out: they have no answer.

    The names of their probes have a slash, as in `<traffic>/1`.
    """
    return run.probes.filter(~pl.col("probe").str.contains("/", literal=True))


def rtts_ms(run: RunRecords) -> Samples:
    """The round-trip time of every probe sent in the window, in the order of sending; +inf for a lost probe."""
    sent = Window.of(run).rows(echoes(run), "sent_ns").sort("sent_ns")
    return sent.select(pl.col("rtt_ns").cast(pl.Float64).fill_null(float("inf")) / MS).to_series().to_numpy()


def measure(run: RunRecords, percents: Sequence[int] = PERCENTILES) -> Iterator[tuple[str, float]]:
    """All `rtt.*` metrics of a run with `ping` traffic; none for other runs."""
    if not traffic_named(run.scenario, "ping"):
        return
    rtts = rtts_ms(run)
    answered = rtts[np.isfinite(rtts)]
    if len(answered):
        yield "rtt.mean_ms", float(answered.mean())
    if len(rtts):
        for percent in percents:
            yield f"rtt.p{percent}_ms", percentile(rtts, percent)
    if len(answered):
        yield "rtt.max_ms", float(answered.max())
    yield "rtt.sent", len(rtts)
    yield "rtt.lost", len(rtts) - len(answered)
    yield "rtt.answered", len(answered)
