"""Round-trip times of the probes, all together, and each prober's if there are several."""

from collections.abc import Iterator, Sequence

import polars as pl

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.long import Measured, long
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, idle_times
from bufferscope.model.network import probers
from bufferscope.stats.estimate import HUNDREDTHS, Samples, percentile_of

MS = 1e6
PERCENTILES = (5, 50, 95, 99)
ANSWERED_PERCENTILES = (50, 95)
IDLE_PERCENTILES = (50,)


def is_echo() -> pl.Expr:
    """Whether a `ping` or `irtt` sent the probe. Packets of calls are no echoes: they have no answer.

    The names of their probes have a slash, as in `<traffic>/1`.
    """
    return ~pl.col("probe").str.contains("/", literal=True)


def echoes(run: RunRecords) -> pl.DataFrame:
    """The rows of `probes` that have an answer if none is lost: those of `ping` and `irtt`."""
    return run.probes.filter(is_echo())


def rtts_ms(run: RunRecords) -> Samples:
    """The round-trip time of every probe sent in the window, in the order of sending; +inf for a lost probe."""
    sent = Window.of(run).rows(echoes(run), "sent_ns").sort("sent_ns")
    return sent.select(pl.col("rtt_ns").cast(pl.Float64).fill_null(float("inf")) / MS).to_series().to_numpy()


def measure(batch: Batch, percents: Sequence[int] = PERCENTILES) -> Iterator[pl.LazyFrame]:
    """All `rtt.*` metrics of the runs with `ping` or `irtt` traffic."""
    sent = batch.rows("probes", "probe", "rtt_ns", time="sent_ns").filter(is_echo())
    wide = batch.having("ping", "irtt").join(_found(sent, "run"), on="run", how="left", maintain_order="left")
    yield long(wide, {f"rtt.{name}": value for name, value in _metrics(percents).items()})

    several = batch.frame(
        {"probe": pl.String},
        lambda run: [(entry["name"],) for entry in known] if len(known := probers(run.scenario)) > 1 else [],
    )
    each = ["run", "probe"]
    wide = several.join(_found(sent, *each), on=each, how="left", maintain_order="left")
    yield long(wide, {f"rtt.{{}}.{name}": value for name, value in _metrics(percents).items()}, "probe")


def measure_answered(batch: Batch, percents: Sequence[int] = ANSWERED_PERCENTILES) -> Iterator[pl.LazyFrame]:
    """`answered.p<N>_ms` of the runs with `ping` or `irtt` traffic."""
    sent = batch.rows("probes", "probe", "rtt_ns", time="sent_ns").filter(is_echo())
    answered = sent.group_by("run").agg(ordered=pl.col("rtt_ns").drop_nulls().sort())
    wide = batch.having("ping", "irtt").join(answered, on="run", how="left", maintain_order="left")
    found = {
        f"answered.p{percent}_ms": (percentile_of(pl.col("ordered"), percent), HUNDREDTHS * MS) for percent in percents
    }
    yield long(wide, found)


def measure_idle(batch: Batch, percents: Sequence[int] = IDLE_PERCENTILES) -> Iterator[pl.LazyFrame]:
    """All `idle.*` metrics: of the probes that were sent before and after the load of a test.

    The queues drain first: after the load, as much time is left out as the slowest probe under load took.
    """
    loaded = batch.rows("probes", "probe", "rtt_ns", time="sent_ns").filter(is_echo())
    ends = batch.windows.join(loaded.group_by("run").agg(slowest_ns=pl.col("rtt_ns").max()), on="run", how="left")
    drained_ns = pl.col("end_ns") + pl.col("slowest_ns").fill_null(0)
    idle = batch.rows_in(batch.times(idle_times), "probes", "probe", "rtt_ns", time="sent_ns").filter(is_echo())
    is_drained = (pl.col("sent_ns") <= pl.col("end_ns")) | (pl.col("sent_ns") > drained_ns)
    sent = idle.join(ends, on="run").filter(is_drained).drop("start_ns", "end_ns", "slowest_ns")
    known = _metrics(percents)
    chosen = [*(f"p{percent}_ms" for percent in percents), "max_ms", "sent", "lost"]
    yield long(_found(sent, "run"), {f"idle.{name}": known[name] for name in chosen})


def _found(sent: pl.LazyFrame, *keys: str) -> pl.LazyFrame:
    """What the metrics of probes are made of, by these columns."""
    rtt = pl.col("rtt_ns")
    return sent.group_by(*keys).agg(
        sent=pl.len(), answered=rtt.count(), sum=rtt.sum(), max=rtt.max(), ordered=rtt.sort(nulls_last=True)
    )


def _metrics(percents: Sequence[int]) -> dict[str, Measured]:
    """The metrics by the end of their name."""
    count = {name: pl.col(name).fill_null(0) for name in ("sent", "answered")}
    answered = pl.when(pl.col("answered") > 0)
    return {
        "mean_ms": (answered.then(pl.col("sum")), pl.col("answered") * MS),
        **{f"p{percent}_ms": (percentile_of(pl.col("ordered"), percent), HUNDREDTHS * MS) for percent in percents},
        "max_ms": (pl.col("max"), MS),
        "sent": count["sent"],
        "lost": count["sent"] - count["answered"],
        "answered": count["answered"],
    }
