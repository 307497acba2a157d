"""Round-trip times of the probes."""

from collections.abc import Iterator, Sequence

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import long
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import HUNDREDTHS, Samples, percentile_of
from bufferscope.metrics.window import Window

MS = 1e6
PERCENTILES = (5, 50, 95, 99)


def is_echo() -> pl.Expr:
    """Whether a `ping` sent the probe. Packets of calls are no echoes: they have no answer.

    The names of their probes have a slash, as in `<traffic>/1`.
    """
    return ~pl.col("probe").str.contains("/", literal=True)


def echoes(run: RunRecords) -> pl.DataFrame:
    """The rows of `probes` that a `ping` sent."""
    return run.probes.filter(is_echo())


def rtts_ms(run: RunRecords) -> Samples:
    """The round-trip time of every probe sent in the window, in the order of sending; +inf for a lost probe."""
    sent = Window.of(run).rows(echoes(run), "sent_ns").sort("sent_ns")
    return sent.select(pl.col("rtt_ns").cast(pl.Float64).fill_null(float("inf")) / MS).to_series().to_numpy()


def measure(batch: Batch, percents: Sequence[int] = PERCENTILES) -> Iterator[pl.LazyFrame]:
    """All `rtt.*` metrics of the runs with `ping` traffic."""
    rtt = pl.col("rtt_ns")
    sent = batch.rows("probes", "probe", "rtt_ns", time="sent_ns").filter(is_echo())
    found = sent.group_by("run").agg(
        sent=pl.len(), answered=rtt.count(), sum=rtt.sum(), max=rtt.max(), ordered=rtt.sort(nulls_last=True)
    )
    wide = batch.having("ping").join(found, on="run", how="left", maintain_order="left")
    count = {name: pl.col(name).fill_null(0) for name in ("sent", "answered")}
    percentiles = {percent: percentile_of(pl.col("ordered"), percent) for percent in percents}
    answered = pl.when(pl.col("answered") > 0)
    yield long(
        wide,
        {
            "rtt.mean_ms": (answered.then(pl.col("sum")), pl.col("answered") * MS),
            **{f"rtt.p{percent}_ms": (value, HUNDREDTHS * MS) for percent, value in percentiles.items()},
            "rtt.max_ms": (pl.col("max"), MS),
            "rtt.sent": count["sent"],
            "rtt.lost": count["sent"] - count["answered"],
            "rtt.answered": count["answered"],
        },
    )
