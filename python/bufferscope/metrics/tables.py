"""Metrics as tables: of all runs, aggregated over repetitions, and the definitions themselves."""

import math
from collections.abc import Iterable, Sequence

import polars as pl

from bufferscope.metrics.definitions import DEFINITIONS
from bufferscope.metrics.measuring import Metrics, NotMeasuredError, UnknownMetricError, Value, all_of, metric
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import Estimate, estimate


def aggregate(repetitions: Sequence[Metrics]) -> dict[str, Estimate]:
    """Each metric's mean over repetitions of a point, with standard error and 95 % confidence interval."""
    found = dict.fromkeys(name for metrics in repetitions for name in metrics)
    return {name: estimate([metrics[name] for metrics in repetitions if name in metrics]) for name in found}


def frame(runs: Iterable[RunRecords]) -> pl.DataFrame:
    """All metrics of all runs, one per row: `run, seed, metric, value, censored`; a censored metric's value is null."""
    rows = [
        (run.id, run.seed, name, None if math.isinf(value) else float(value), math.isinf(value))
        for run in runs
        for name, value in all_of(run).items()
    ]
    schema = {"run": pl.String, "seed": pl.Int64, "metric": pl.String, "value": pl.Float64, "censored": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def column(runs: Iterable[RunRecords], name: str) -> list[pl.DataFrame]:
    """One metric of several runs, as a frame of one row for each run: `value, censored`.

    The value is null if a run has no records of the metric. Raises `UnknownMetricError` if no run can have a metric of
    this name.
    """
    values: list[Value | None] = []
    unknown: list[UnknownMetricError] = []
    for run in runs:
        try:
            values.append(metric(run, name))
        except NotMeasuredError:
            values.append(None)
        except UnknownMetricError as error:
            values.append(None)
            unknown.append(error)
    if unknown and len(unknown) == len(values):
        raise unknown[0]
    schema = {"value": pl.Float64, "censored": pl.Boolean}
    rows = [(None, False) if v is None else (None if v.censored else v.number, v.censored) for v in values]
    return [pl.DataFrame([row], schema=schema, orient="row") for row in rows]


def describe() -> pl.DataFrame:
    """The definitions of all metrics: `name, unit, meaning, source`."""
    return pl.DataFrame([(d.name, d.unit, d.meaning, d.source) for d in DEFINITIONS],
                        schema=["name", "unit", "meaning", "source"], orient="row")  # fmt: skip
