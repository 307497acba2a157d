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


def _spread(name: str, meaning: str, heading: str, spread: Callable[[Any], Spread]) -> Iterator[LiveMetric]:
    """Percentiles and the longest; one that falls among lost probes is infinite."""

    def percentile(percent: int) -> Callable[[Any], Number]:
        def value(part: Any) -> Number:
            found: int | None = spread(part)[f"p{percent}_ns"]  # type: ignore[literal-required]
            return float("inf") if found is None and spread(part)["censored"] else found, MS

        return value

    for percent in (50, 95, 99):
        yield LiveMetric(
            f"{name}.p{percent}_ms",
            "ms",
            f"{percent}th percentile of {meaning}, lost echoes as +inf; of live measurements only.",
            SOURCE,
            percentile(percent),
            heading=f"{heading} p{percent} (ms)",
        )
    yield LiveMetric(
        f"{name}.max_ms",
        "ms",
        f"The largest of {meaning}, without lost echoes.",
        SOURCE,
        lambda part: (spread(part)["max_ns"], MS),
        heading=f"{heading} max (ms)",
    )


OF_MEASUREMENT = (
    *_spread(
        "live.idle.rtt",
        "the round-trip times of the echoes before the load",
        "idle rtt",
        lambda verdict: verdict["idle"]["rtt"],
    ),
)
OF_PHASE = (
    *_spread(
        "live.<phase>.rtt",
        "the round-trip times of a phase's echoes under load",
        "<phase> rtt",
        lambda phase: phase["numbers"]["loaded"],
    ),
    *_spread(
        "live.<phase>.added",
        "these round-trip times minus the idle median",
        "<phase> added",
        lambda phase: phase["numbers"]["added"],
    ),
    LiveMetric(
        "live.<phase>.sent",
        "probes",
        "Echoes sent under load in a phase.",
        SOURCE,
        lambda phase: (phase["numbers"]["loaded"]["count"], 1.0),
        heading="<phase> sent",
    ),
    LiveMetric(
        "live.<phase>.lost",
        "probes",
        "Those of them that were lost.",
        SOURCE,
        lambda phase: (phase["numbers"]["loaded"]["lost"], 1.0),
        heading="<phase> lost",
    ),
    LiveMetric(
        "live.<phase>.rpm",
        "1/min",
        "Responsiveness of a phase, in round trips per minute.",
        SOURCE,
        lambda phase: (phase["rpm"]["rpm"], 1.0),
        heading="<phase> rpm",
    ),
)
OF_DIRECTION = (
    *_spread(
        "live.<phase>.<direction>.added",
        "the change of the one-way delay over the idle median",
        "<phase> <direction> added",
        lambda direction: direction["added"],
    ),
    LiveMetric(
        "live.<phase>.<direction>.loss_percent",
        "%",
        "Echoes that were lost in this direction, of those sent.",
        SOURCE,
        lambda direction: (direction["loss"], PERCENT),
        heading="<phase> <direction> loss (%)",
    ),
    LiveMetric(
        "live.<phase>.<direction>.goodput_mbit",
        "Mbit/s",
        "Mean goodput at the receiver, without the first fifth of the phase (at most 2 s).",
        SOURCE,
        lambda direction: (_of(direction["goodput"], "mean_bps"), MBIT),
        heading="<phase> <direction> goodput (Mbit/s)",
    ),
    LiveMetric(
        "live.<phase>.<direction>.goodput_p10_mbit",
        "Mbit/s",
        "The lowest decile of goodput in steps of 1 s.",
        SOURCE,
        lambda direction: (_of(direction["goodput"], "p10_bps"), MBIT),
        heading="<phase> <direction> goodput_p10 (Mbit/s)",
    ),
    LiveMetric(
        "live.<phase>.<direction>.fill_s",
        "s",
        "From the start of the load to 80 % of the later median delay.",
        SOURCE,
        lambda direction: (direction["fill_ns"], S),
        heading="<phase> <direction> fill (s)",
    ),
    LiveMetric(
        "live.<phase>.<direction>.standing_ms",
        "ms",
        "Median of the added delay once the buffer is full.",
        SOURCE,
        lambda direction: (_of(direction["buffer"], "delay_ns"), MS),
        heading="<phase> <direction> standing (ms)",
    ),
    LiveMetric(
        "live.<phase>.<direction>.buffer_kb",
        "kB",
        "That delay times the rate of IP packets: the buffer in use.",
        SOURCE,
        lambda direction: (_of(direction["buffer"], "bytes"), KB),
        heading="<phase> <direction> buffer (kB)",
    ),
    LiveMetric(
        "live.<phase>.<direction>.retransmits_percent",
        "%",
        "Segments of the load that were retransmitted.",
        SOURCE,
        lambda direction: (_of(direction["load"], "retransmits"), PERCENT),
        heading="<phase> <direction> retransmits (%)",
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
