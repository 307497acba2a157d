"""Round-trip times of the probes, all together, and each prober's if there are several."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import Measured, ordered
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, idle_times
from bufferscope.model.network import probers
from bufferscope.stats.estimate import Samples

MS = 1e6
SOURCE = "probes: sent_ns, rtt_ns"
READS = {"probes": ("probe", "sent_ns", "rtt_ns")}
PERCENTILES = (5, 50, 95, 99)


def is_echo() -> pl.Expr:
    """Whether a `ping` or `irtt` sent the probe. Packets of calls and games are no echoes: they have no answer.

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


def _sent(batch: Batch) -> pl.LazyFrame:
    """The probes sent in the window."""
    return batch.rows("probes", "probe", "rtt_ns", time="sent_ns").filter(is_echo())


def _found(sent: pl.LazyFrame, *keys: str) -> pl.LazyFrame:
    """What the metrics of probes are made of, by these columns."""
    rtt = pl.col("rtt_ns")
    return sent.group_by(*keys).agg(
        sent=pl.len(), answered=rtt.count(), sum=rtt.sum(), max=rtt.max(), ordered=rtt.sort(nulls_last=True)
    )


def _mean() -> Measured:
    return pl.when(pl.col("answered") > 0).then(pl.col("sum")), pl.col("answered") * MS


def _percentile(percent: int) -> Measured:
    return ordered(percent, MS)


def _longest() -> Measured:
    return pl.col("max"), MS


def _number(column: str) -> pl.Expr:
    return pl.col(column).fill_null(0)


def _lost() -> Measured:
    return _number("sent") - _number("answered")


@query(
    Metric("rtt.mean_ms", "ms", "Mean round-trip time of the answered probes.", SOURCE, _mean),
    Metric(
        "rtt.p<N>_ms",
        "ms",
        "Percentile of the round-trip time over all probes sent, with lost ones counted as +inf.",
        SOURCE,
        _percentile,
        percentiles=PERCENTILES,
        heading={50: "RTT p50 (ms)", 95: "p95"},
    ),
    Metric("rtt.max_ms", "ms", "Longest round-trip time of the answered probes.", SOURCE, _longest, heading="max"),
    Metric("rtt.sent", "probes", "Probes sent.", SOURCE, lambda: _number("sent")),
    Metric(
        "rtt.lost",
        "probes",
        "Probes sent that were never answered, or not in time.",
        SOURCE,
        _lost,
        heading="lost probes",
    ),
    Metric(
        "rtt.answered",
        "probes",
        "Probes sent that were answered: rtt.sent - rtt.lost.",
        SOURCE,
        lambda: _number("answered"),
    ),
    reads=READS,
)
def of_all(batch: Batch) -> pl.LazyFrame:
    """All probes of the runs with `ping` or `irtt` traffic together."""
    return batch.having("ping", "irtt").join(_found(_sent(batch), "run"), on="run", how="left", maintain_order="left")


EACH = "The same of one traffic entry of ping or irtt, if the scenario has several."


@query(
    Metric("rtt.<traffic>.mean_ms", "ms", EACH, SOURCE, _mean),
    Metric("rtt.<traffic>.p<N>_ms", "ms", EACH, SOURCE, _percentile, percentiles=PERCENTILES),
    Metric("rtt.<traffic>.max_ms", "ms", EACH, SOURCE, _longest),
    Metric("rtt.<traffic>.sent", "probes", EACH, SOURCE, lambda: _number("sent")),
    Metric("rtt.<traffic>.lost", "probes", EACH, SOURCE, _lost),
    Metric("rtt.<traffic>.answered", "probes", EACH, SOURCE, lambda: _number("answered")),
    reads=READS,
)
def of_each(batch: Batch) -> pl.LazyFrame:
    """The probes of each entry, if there are several."""
    several = batch.frame(
        {"probe": pl.String},
        lambda run: [(entry["name"],) for entry in known] if len(known := probers(run.scenario)) > 1 else [],
    )
    each = ["run", "probe"]
    wide = several.join(_found(_sent(batch), *each), on=each, how="left", maintain_order="left")
    return wide.rename({"probe": "traffic"})


@query(
    Metric(
        "answered.p<N>_ms",
        "ms",
        "Percentile of the round-trip time over the answered probes alone, as from the output of ping, which leaves "
        "lost ones out.",
        SOURCE,
        _percentile,
        percentiles=(50, 95),
    ),
    reads=READS,
)
def of_answered(batch: Batch) -> pl.LazyFrame:
    """The answered probes of the runs with `ping` or `irtt` traffic."""
    answered = _sent(batch).group_by("run").agg(ordered=pl.col("rtt_ns").drop_nulls().sort())
    return batch.having("ping", "irtt").join(answered, on="run", how="left", maintain_order="left")


@query(
    Metric(
        "idle.p<N>_ms",
        "ms",
        "Percentile of the round-trip time of the probes that were sent before the load of a test, and after it once "
        "the queues have drained, lost ones as +inf.",
        SOURCE,
        _percentile,
        percentiles=(50,),
    ),
    Metric("idle.max_ms", "ms", "The longest of their round-trip times.", SOURCE, _longest),
    Metric("idle.sent", "probes", "Their number.", SOURCE, lambda: _number("sent")),
    Metric("idle.lost", "probes", "Those of them that were never answered, or not in time.", SOURCE, _lost),
    reads=READS,
)
def of_idle(batch: Batch) -> pl.LazyFrame:
    """The probes that were sent before and after the load of a test.

    The queues drain first: after the load, as much time is left out as the slowest probe under load took.
    """
    loaded = _sent(batch).group_by("run").agg(slowest_ns=pl.col("rtt_ns").max())
    ends = batch.windows.join(loaded, on="run", how="left")
    drained_ns = pl.col("end_ns") + pl.col("slowest_ns").fill_null(0)
    idle = batch.rows_in(batch.times(idle_times), "probes", "probe", "rtt_ns", time="sent_ns").filter(is_echo())
    is_drained = (pl.col("sent_ns") <= pl.col("end_ns")) | (pl.col("sent_ns") > drained_ns)
    sent = idle.join(ends, on="run").filter(is_drained).drop("start_ns", "end_ns", "slowest_ns")
    return _found(sent, "run")
