"""The numbers of a live measurement's verdict, phase by phase.

Each phase has its own load, so numbers over a whole measurement would mean nothing: it has only these metrics.
"""

from collections.abc import Iterator, Mapping

import polars as pl

from bufferscope.metrics.batch import RUN, Batch
from bufferscope.metrics.records import RunRecords
from bufferscope.store.live import live_of
from bufferscope.store.verdict import DirectionNumbers, PhaseVerdict, Spread

PREFIX = "live."
MS, S, MBIT, KB, PERCENT = 1e6, 1e9, 1e6, 1e3, 0.01
PERCENTILES = ("p50", "p95", "p99", "max")


def measure(batch: Batch) -> Iterator[pl.LazyFrame]:
    """All `live.*` metrics of the runs that are live measurements."""
    rows = [(number, *row) for number, run in enumerate(batch.runs) for row in _rows(run)]
    kinds = {"run": RUN, "metric": pl.String, "value": pl.Float64, "unit": pl.Float64}
    yield pl.LazyFrame(rows, schema=kinds, orient="row")


def is_live(run: RunRecords) -> bool:
    """Whether a run is a live measurement."""
    return live_of(run.meta["summary"]) is not None


def _rows(run: RunRecords) -> Iterator[tuple[str, float, float]]:
    """The name, the value and its unit of each metric that has a value."""
    live = live_of(run.meta["summary"])
    if live is None:
        return
    found = _spread("live.idle.rtt", live["verdict"]["idle"]["rtt"])
    for phase in live["verdict"]["phases"]:
        for name, value in _phase(phase).items():  # of several phases of a kind, the first
            found.setdefault(name, value)
    for name, (number, unit) in found.items():
        if number is not None:
            yield name, float(number), unit


Values = dict[str, tuple[float | None, float]]


def _phase(phase: PhaseVerdict) -> Values:
    name = f"live.{phase['kind']}"
    numbers = phase["numbers"]
    found = {
        **_spread(f"{name}.rtt", numbers["loaded"]),
        **_spread(f"{name}.added", numbers["added"]),
        f"{name}.sent": (numbers["loaded"]["count"], 1.0),
        f"{name}.lost": (numbers["loaded"]["lost"], 1.0),
        f"{name}.rpm": (phase["rpm"]["rpm"], 1.0),
    }
    for direction in numbers["directions"]:
        found |= _direction(f"{name}.{direction['direction']}", direction)
    return found


def _direction(name: str, numbers: DirectionNumbers) -> Values:
    goodput, buffer, load = numbers["goodput"], numbers["buffer"], numbers["load"]
    known: Mapping[str, tuple[float | None, float]] = {
        "loss_percent": (numbers["loss"], PERCENT),
        "goodput_mbit": (goodput["mean_bps"] if goodput else None, MBIT),
        "goodput_p10_mbit": (goodput["p10_bps"] if goodput else None, MBIT),
        "fill_s": (numbers["fill_ns"], S),
        "standing_ms": (buffer["delay_ns"] if buffer else None, MS),
        "buffer_kb": (buffer["bytes"] if buffer else None, KB),
        "retransmits_percent": (load["retransmits"] if load else None, PERCENT),
    }
    return {**_spread(f"{name}.added", numbers["added"]), **{f"{name}.{what}": each for what, each in known.items()}}


def _spread(name: str, spread: Spread) -> Values:
    """Percentiles and the longest; one that falls among lost probes is infinite."""
    found: Values = {}
    for which in PERCENTILES:
        value: int | None = spread[f"{which}_ns"]  # type: ignore[literal-required]
        hidden = value is None and spread["censored"] and which != "max"
        found[f"{name}.{which}_ms"] = float("inf") if hidden else value, MS
    return found
