"""Turn a result's records into the tidy frames that figures draw: runs grouped by point, rows labelled with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.queues import mean_delays_s
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS, Port, path, ports, probers, traffic_ends
from bufferscope.model.recorded import explanation, unrecorded
from bufferscope.results.variation import Variation

MOST_POINTS = 500
"""The most points that figures, pages and printed tables show; runs of one point count once."""
TITLES = {"tcp.gso_max_segs": "GSO limit"}
"""Titles of swept keys whose own words would say nothing to a reader."""


class NoDataError(ValueError):
    """The records hold no data for the figure; the message says what is missing."""


def check_size(result: ResultRecords, figure: str) -> None:
    """Raise `NoDataError` if the result has more points than a figure can show."""
    if (points := size(result)) > MOST_POINTS:
        raise NoDataError(f"{figure}: {points} points are too many to draw; at most {MOST_POINTS}")


def size(result: ResultRecords) -> int:
    """The number of a result's points."""
    return len(set(variation(result).labels))


def check_recorded(result: ResultRecords, figure: str, tables: Sequence[str]) -> None:
    """Raise `NoDataError` if none of the runs records one of these tables, from which a figure is drawn."""
    for table in tables:
        scenarios = [run.scenario for run in result.runs]
        if scenarios and all(table in unrecorded(scenario) for scenario in scenarios):
            raise NoDataError(f"{figure}: {explanation(scenarios[0], table)}")


class ResultRecords(Protocol):
    """The only part of an experiment's result that figures may use."""

    @property
    def runs(self) -> Sequence[RunRecords]:
        """The runs; points are in the sweep's order, and the repetitions of a point stand together."""


@dataclass(frozen=True)
class PlottedPoint:
    """The repetitions of a point: runs that differ only in their seed."""

    label: str
    runs: tuple[RunRecords, ...]

    @property
    def first(self) -> RunRecords:
        """The repetition with the least seed."""
        return self.runs[0]


def points(result: ResultRecords) -> list[PlottedPoint]:
    """The result's points in the order of their runs; runs that differ in more than their seed are different points."""
    grouped: dict[str, list[RunRecords]] = {}
    for run, label in zip(result.runs, variation(result).labels, strict=True):
        grouped.setdefault(label, []).append(run)
    if not grouped:
        raise NoDataError("the result has no runs")
    return [PlottedPoint(label, tuple(sorted(runs, key=lambda run: run.seed))) for label, runs in grouped.items()]


def shared_keys(points: Sequence[PlottedPoint]) -> list[str]:
    """The swept keys that all of these points have, in the order of the first; runs may have swept different keys."""
    first, *rest = (point.first.point for point in points)
    return [key for key in first if all(key in other for other in rest)]


def variation(result: ResultRecords) -> Variation:
    """What differs among the runs; taken from the result if it has that already."""
    known: Variation | None = getattr(result, "variation", None)
    return known or Variation(result.runs)


def sweep_title(result: ResultRecords) -> str:
    """The keys in the points' labels, in words: `queue limit` for `link.bottleneck.queue.limit`; `engine`.

    Points that the user has named are the arms of a comparison, so their title is `arm`.
    """
    found = variation(result)
    return "arm" if found.is_named else ", ".join(dict.fromkeys(key_title(key) for key in found.titled))


def swept_alone(result: ResultRecords) -> bool:
    """Whether the points differ in a single swept key, and in nothing else."""
    keys = variation(result).keys
    return len(keys) == 1 and all(list(run.point) == list(keys) for run in result.runs)


def others(result: ResultRecords, run: RunRecords) -> list[str]:
    """A run's values of the varying keys that are not swept, such as the engine."""
    found = variation(result)
    values = found.of(run)
    return [values[key] for key in found.keys if key in values and key not in run.point]


def key_title(key: str) -> str:
    """A swept key in words: `queue limit` for `link.NAME.forward.queue.limit`, `port` for `link.NAME.forward`."""
    if key in TITLES:
        return TITLES[key]
    parts = key.split(".")
    named = parts[2:] or parts[1:] if parts[0] in ("link", "host", "traffic") else parts
    return " ".join(part.replace("_", " ") for part in named if part not in ("forward", "reverse")) or "port"


def engine(run: RunRecords) -> str:
    """The engine that carried the run's packets."""
    return str(run.meta["engine"])


def over_time(result: ResultRecords, rows: Callable[[RunRecords], pl.DataFrame]) -> pl.DataFrame:
    """`rows` of all runs with columns `point` and `repetition` (0, 1, ... by seed); `t_ns` becomes `time_s`."""
    frame = pl.concat(
        [
            rows(run).with_columns(point=pl.lit(point.label), repetition=pl.lit(repetition))
            for point in points(result)
            for repetition, run in enumerate(point.runs)
        ]
    )
    return _known(frame.with_columns((pl.col("t_ns") / NANOSECONDS).round(6).alias("time_s")).drop("t_ns"))


def _known(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with null for numbers that are no numbers: NaN and infinity; rows without a time are left out."""
    numbers = pl.selectors.float()
    return frame.with_columns(pl.when(numbers.is_finite()).then(numbers)).drop_nulls("time_s")


def has_none(frame: pl.DataFrame, column: str) -> bool:
    """Whether no row has a value in this column."""
    return not frame[column].count()


def pooled(result: ResultRecords, rows: Callable[[RunRecords], pl.DataFrame]) -> pl.DataFrame:
    """`rows` of all repetitions, with a column `point`."""
    return pl.concat(
        [rows(run).with_columns(point=pl.lit(point.label)) for point in points(result) for run in point.runs]
    )


def duration_s(result: ResultRecords) -> float:
    """The longest run's duration: the end of the time axis."""
    return max(float(run.scenario["duration_ns"]) for run in result.runs) / NANOSECONDS


def bottleneck(result: ResultRecords) -> Port:
    """The port in which the packets of all runs together waited longest, with its settings of the first run."""
    waited: dict[str, float] = {}
    for delays_s in mean_delays_s(result.runs):
        for port, delay_s in delays_s.items():
            waited[port] = waited.get(port, 0.0) + delay_s
    if not waited:
        raise NoDataError("no port of the network has a rate, so nothing can queue")
    name = max(waited, key=lambda port: waited[port])
    return ports(result.runs[0].scenario)[name]


def probe_path(run: RunRecords) -> tuple[list[Port], list[Port]]:
    """The ports on the path of the first prober, forward and back."""
    found = probers(run.scenario)
    if not found:
        raise NoDataError("no traffic of kind ping or irtt, so there are no round-trip times")
    near, far = traffic_ends(run.scenario, found[0])
    return path(run.scenario, near, far), path(run.scenario, far, near)
