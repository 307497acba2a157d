"""The numbers of a live measurement's verdict, phase by phase.

Each phase has its own load, so numbers over a whole measurement would mean nothing: it has only these metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch, run_type
from bufferscope.metrics.declaring import Metric, Query
from bufferscope.metrics.records import RunRecords
from bufferscope.store.live import live_of

if TYPE_CHECKING:
    from bufferscope.store.verdict import Spread

PREFIX = "live."
SOURCE = "run.json: summary.live.verdict"
MS, S, MBIT, KB, PERCENT = 1e6, 1e9, 1e6, 1e3, 0.01
Number = tuple[float | None, float]
"""A number, if it is known, and its unit."""


@dataclass(frozen=True, eq=False)
class LiveMetric(Metric):
    """A metric whose value is taken from the verdict, or from that of a phase or of a direction."""

    value: Callable[[Any], Number]


ENDINGS = {"_ms": " (ms)", "_mbit": " (Mbit/s)", "_s": " (s)", "_kb": " (kB)", "_percent": " (%)"}
"""How the unit at the end of a name is written at the head of a column."""


def _metric(name: str, unit: str, meaning: str, value: Callable[[Any], Number]) -> LiveMetric:
    """The head of its column has the words of its name."""
    ending = next((each for each in ENDINGS if name.endswith(each)), "")
    words = name.removeprefix(PREFIX).removesuffix(ending).replace(".", " ")
    return LiveMetric(name, unit, meaning, SOURCE, value, heading=words + ENDINGS.get(ending, ""))


def _spread(name: str, meaning: str, spread: Callable[[Any], Spread]) -> Iterator[LiveMetric]:
    """Percentiles and the longest; one that falls among lost probes is infinite."""

    def percentile(percent: int) -> Callable[[Any], Number]:
        def value(part: Any) -> Number:
            found: int | None = spread(part)[f"p{percent}_ns"]  # type: ignore[literal-required]
            return float("inf") if found is None and spread(part)["censored"] else found, MS

        return value

    for percent in (50, 95, 99):
        about = f"{percent}th percentile of {meaning}, lost echoes as +inf; of live measurements only."
        yield _metric(f"{name}.p{percent}_ms", "ms", about, percentile(percent))
    about = f"The largest of {meaning}, without lost echoes."
    yield _metric(f"{name}.max_ms", "ms", about, lambda part: (spread(part)["max_ns"], MS))


OF_MEASUREMENT = (
    *_spread(
        "live.idle.rtt",
        "the round-trip times of the echoes before the load",
        lambda verdict: verdict["idle"]["rtt"],
    ),
)
OF_PHASE = (
    *_spread(
        "live.<phase>.rtt",
        "the round-trip times of a phase's echoes under load",
        lambda phase: phase["numbers"]["loaded"],
    ),
    *_spread(
        "live.<phase>.added",
        "these round-trip times minus the idle median",
        lambda phase: phase["numbers"]["added"],
    ),
    _metric(
        "live.<phase>.sent",
        "probes",
        "Echoes sent under load in a phase.",
        lambda phase: (phase["numbers"]["loaded"]["count"], 1.0),
    ),
    _metric(
        "live.<phase>.lost",
        "probes",
        "Those of them that were lost.",
        lambda phase: (phase["numbers"]["loaded"]["lost"], 1.0),
    ),
    _metric(
        "live.<phase>.rpm",
        "1/min",
        "Responsiveness of a phase, in round trips per minute.",
        lambda phase: (phase["rpm"]["rpm"], 1.0),
    ),
)
OF_DIRECTION = (
    *_spread(
        "live.<phase>.<direction>.added",
        "the change of the one-way delay over the idle median",
        lambda direction: direction["added"],
    ),
    _metric(
        "live.<phase>.<direction>.loss_percent",
        "%",
        "Echoes that were lost in this direction, of those sent.",
        lambda direction: (direction["loss"], PERCENT),
    ),
    _metric(
        "live.<phase>.<direction>.goodput_mbit",
        "Mbit/s",
        "Mean goodput at the receiver, without the first fifth of the phase (at most 2 s).",
        lambda direction: (_of(direction["goodput"], "mean_bps"), MBIT),
    ),
    _metric(
        "live.<phase>.<direction>.goodput_p10_mbit",
        "Mbit/s",
        "The lowest decile of goodput in steps of 1 s.",
        lambda direction: (_of(direction["goodput"], "p10_bps"), MBIT),
    ),
    _metric(
        "live.<phase>.<direction>.fill_s",
        "s",
        "From the start of the load to 80 % of the later median delay.",
        lambda direction: (direction["fill_ns"], S),
    ),
    _metric(
        "live.<phase>.<direction>.standing_ms",
        "ms",
        "Median of the added delay once the buffer is full.",
        lambda direction: (_of(direction["buffer"], "delay_ns"), MS),
    ),
    _metric(
        "live.<phase>.<direction>.buffer_kb",
        "kB",
        "That delay times the rate of IP packets: the buffer in use.",
        lambda direction: (_of(direction["buffer"], "bytes"), KB),
    ),
    _metric(
        "live.<phase>.<direction>.retransmits_percent",
        "%",
        "Segments of the load that were retransmitted.",
        lambda direction: (_of(direction["load"], "retransmits"), PERCENT),
    ),
)


class LiveQuery(Query):
    """The metrics of live measurements, which need no table."""

    def measure(self, batch: Batch, percent: int | None = None) -> pl.LazyFrame:
        """The metrics in the form of `long`."""
        rows = [(number, *row) for number, run in enumerate(batch.runs) for row in _rows(run)]
        kinds = {"run": run_type(), "metric": pl.String, "value": pl.Float64, "unit": pl.Float64}
        return pl.LazyFrame(rows, schema=kinds, orient="row")


of_measurements = LiveQuery((*OF_MEASUREMENT, *OF_PHASE, *OF_DIRECTION), reads={})


def is_live(run: RunRecords) -> bool:
    """Whether a run is a live measurement."""
    return live_of(run.meta["summary"]) is not None


def _rows(run: RunRecords) -> Iterator[tuple[str, float, float]]:
    """The name, the value and its unit of each metric that has a value."""
    live = live_of(run.meta["summary"])
    if live is None:
        return
    verdict = live["verdict"]
    found = {each.name: each.value(verdict) for each in OF_MEASUREMENT}
    for phase in verdict["phases"]:
        for each in OF_PHASE:  # of several phases of a kind, the first
            found.setdefault(each.name.replace("<phase>", phase["kind"]), each.value(phase))
        for direction in phase["numbers"]["directions"]:
            for each in OF_DIRECTION:
                name = each.name.replace("<phase>", phase["kind"]).replace("<direction>", direction["direction"])
                found.setdefault(name, each.value(direction))
    for name, (number, unit) in found.items():
        if number is not None:
            yield name, float(number), unit


def _of(numbers: Any, key: str) -> float | None:
    """One of these numbers, if they are known."""
    value: float | None = numbers[key] if numbers else None
    return value
