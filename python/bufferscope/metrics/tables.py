"""Metrics as tables: of all runs, aggregated over repetitions, and the definitions themselves."""

import math
from collections.abc import Sequence
from typing import cast

import polars as pl

from bufferscope.metrics.batch import run_type
from bufferscope.metrics.declared import definitions
from bufferscope.metrics.measuring import of_each, one_of_each
from bufferscope.metrics.records import RunRecords
from bufferscope.model.metric_values import MetricError, Metrics, UnknownMetricError, Value
from bufferscope.stats.estimate import Estimate, estimate


def aggregate(repetitions: Sequence[Metrics]) -> dict[str, Estimate]:
    """The mean of each metric over repetitions of a point.

    Parameters
    ----------
    repetitions
        The metrics of each repetition.

    Returns
    -------
    dict
        For each metric, an `Estimate` in its unit: mean, standard error and 95 % confidence interval.
    """
    found = dict.fromkeys(name for metrics in repetitions for name in metrics)
    return {name: estimate([metrics[name] for metrics in repetitions if name in metrics]) for name in found}


def frame(runs: Sequence[RunRecords]) -> pl.DataFrame:
    """All metrics of all runs as one table.

    Parameters
    ----------
    runs
        The runs.

    Returns
    -------
    polars.DataFrame
        One row for each run and metric: `run, seed, metric, value, censored`; the value of a censored metric is null.
    """
    told = pl.DataFrame(
        {"run": [run.id for run in runs], "seed": [run.seed for run in runs]}, {"run": pl.String, "seed": pl.Int64}
    )
    rows = numbered(runs)
    return pl.concat([told[rows["run"]], rows.drop("run")], how="horizontal")


def numbered(runs: Sequence[RunRecords]) -> pl.DataFrame:
    """The same with each run's index instead of its name and seed: `run, metric, value, censored`."""
    rows = [
        (index, name, None if math.isinf(value) else value, math.isinf(value))
        for index, found in enumerate(of_each(runs))
        for name, value in found.items()
    ]
    schema = {"run": run_type(), "metric": pl.String, "value": pl.Float64, "censored": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def column(runs: Sequence[RunRecords], name: str) -> pl.DataFrame:
    """One metric of several runs, one row for each, with its index: `run, value, censored`.

    The value is null if a run has no records of the metric. Raises `UnknownMetricError` if no run can have a metric of
    this name.
    """
    values = list(one_of_each(runs, name))
    if all(isinstance(value, UnknownMetricError) for value in values):
        raise cast(UnknownMetricError, values[0])
    schema = {"run": run_type(), "value": pl.Float64, "censored": pl.Boolean}
    return pl.DataFrame([(index, *_cells(value)) for index, value in enumerate(values)], schema=schema, orient="row")


def _cells(value: Value | MetricError) -> tuple[float | None, bool]:
    if isinstance(value, MetricError):
        return None, False
    return None if value.censored else value.number, value.censored


def describe() -> pl.DataFrame:
    """The definitions of all metrics.

    Returns
    -------
    polars.DataFrame
        One row for each metric or family of metrics: `name, unit, meaning, source`.
    """
    return pl.DataFrame([(d.name, d.unit, d.meaning, d.source) for d in definitions()],
                        schema=["name", "unit", "meaning", "source"], orient="row")  # fmt: skip
