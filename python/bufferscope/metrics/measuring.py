"""Compute one metric, or all metrics, from a run's records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics import live
from bufferscope.metrics.batch import Batch, batches, run_type
from bufferscope.metrics.declared import definitions, queries
from bufferscope.metrics.declaring import Query
from bufferscope.metrics.long import divided
from bufferscope.metrics.records import RunRecords
from bufferscope.model.metric_names import PERCENTILE, any_percentile, closest, exists, names
from bufferscope.model.metric_values import MetricError, Metrics, NotMeasuredError, UnknownMetricError, Value
from bufferscope.model.recorded import explanation, missing, unrecorded


def compute(run: RunRecords) -> Metrics:
    """Every metric that the run's records can give.

    Parameters
    ----------
    run
        A run.

    Returns
    -------
    Metrics
        Numbers by name, in the order of the definitions; the last word of a name is the unit. A metric that lost probes
        or unfinished transfers hide is infinite.

    Raises
    ------
    StoreError
        A table of a stored run is damaged.

    Examples
    --------
    >>> compute(run)["rtt.p95_ms"]                                                              # doctest: +SKIP
    98.4
    """
    return _computed(Batch([run]))[0]


def all_of(run: RunRecords) -> Metrics:
    """Every metric of a run; a stored run keeps them once they are computed.

    Parameters
    ----------
    run
        A run.

    Returns
    -------
    Metrics
        As of `compute`.
    """
    kept: Metrics | None = getattr(run, "metrics", None)
    return compute(run) if kept is None else kept


def of_each(runs: Sequence[RunRecords]) -> Iterator[Metrics]:
    """Every metric of each run, computed for many runs at once; stored runs keep their metrics in memory.

    Parameters
    ----------
    runs
        The runs.

    Yields
    ------
    Metrics
        One for each run, in their order.
    """
    for batch in batches(runs):
        kept = [_kept(run) for run in batch.runs]
        if None not in kept:
            yield from (found for found in kept if found is not None)
            continue
        for run, found in zip(batch.runs, _computed(batch), strict=True):
            if hasattr(type(run), "metrics"):
                vars(run)["metrics"] = found
            yield found


def metric(run: RunRecords, name: str) -> Value:
    """One metric of a run.

    Parameters
    ----------
    run
        A run.
    name
        The metric's name; in families that have percentiles, any whole percentile, as in `"rtt.p37_ms"`.

    Returns
    -------
    Value
        The number in the metric's unit, or that it is censored.

    Raises
    ------
    UnknownMetricError
        There is no such metric, port or traffic; the text has the closest names.
    NotMeasuredError
        The run has no records to compute it from.
    """
    (value,) = one_of_each([run], name)
    if isinstance(value, MetricError):
        raise value
    return value


def one_of_each(runs: Sequence[RunRecords], name: str) -> Iterator[Value | MetricError]:
    """One metric of each run, computed for many runs at once.

    Parameters
    ----------
    runs
        The runs.
    name
        The metric's name, as for `metric`.

    Yields
    ------
    Value or MetricError
        One for each run, in their order; the error if the run has no such metric.
    """
    for is_kept, group in groupby(runs, lambda run: name in (_kept(run) or ())):
        if is_kept:
            yield from (Value(found[name]) for run in group if (found := _kept(run)) is not None)
        else:
            yield from _measured_ones(list(group), name)


def _measured_ones(runs: Sequence[RunRecords], name: str) -> Iterator[Value | MetricError]:
    for batch in batches(runs):
        for run, value in zip(batch.runs, _one(batch, name), strict=True):
            if value is None or missing(name, unrecorded(run.scenario)):
                yield _explanation(run, name)
            else:
                yield Value(value)


def _kept(run: RunRecords) -> Metrics | None:
    """The metrics that a run keeps from an earlier computation."""
    kept: Metrics | None = getattr(run, "__dict__", {}).get("metrics")
    return kept


def _computed(batch: Batch) -> list[Metrics]:
    """Every metric of each run of a batch, in one query."""
    values: list[dict[str, float]] = [{} for _ in batch.runs]
    empty = set.intersection(*(set(unrecorded(run.scenario)) for run in batch.runs))
    for number, name, value in _measured(batch, _queries(frozenset(empty))).iter_rows():
        values[number][name] = value
    return [Metrics(_recorded(run, found)) for run, found in zip(batch.runs, values, strict=True)]


@lru_cache(maxsize=64)
def _queries(empty: frozenset[str]) -> Sequence[Query]:
    """The queries with a metric that can be computed without these tables."""
    return [each for each in queries() if any(empty.isdisjoint(metric.tables) for metric in each.metrics)]


def _recorded(run: RunRecords, found: Mapping[str, float]) -> Mapping[str, float]:
    """The metrics without those of tables that the run does not record; of a live measurement, those of its phases."""
    if live.is_live(run):
        return {name: value for name, value in found.items() if name.startswith(live.PREFIX)}
    empty = unrecorded(run.scenario)
    return {name: value for name, value in found.items() if not missing(name, empty)} if empty else found


def _one(batch: Batch, name: str) -> list[float | None]:
    """One metric of each run of a batch, whether or not its table is recorded; None if a run has none."""
    values: list[float | None] = [None] * len(batch.runs)
    own = next((each for each in queries() if any(metric.fits(name) for metric in each.metrics)), None)
    if own:
        percent = PERCENTILE.search(name)
        for number, value in (
            _measured(batch, [own], percent and int(percent[1])).filter(metric=name).select("run", "value").iter_rows()
        ):
            values[number] = value
    return values


def _measured(batch: Batch, chosen: Sequence[Query], percent: int | None = None) -> pl.DataFrame:
    """The metrics of these queries: `run, metric, value`, run by run; all at once."""
    frames = (frame for each in chosen if (frame := each.measure(batch, percent)) is not None)
    none = pl.LazyFrame(schema={"run": run_type(), "metric": pl.String, "value": pl.Float64, "unit": pl.Float64})
    fractions = pl.concat([none, *frames])
    found = fractions.sort("run", maintain_order=True).collect(engine="in-memory")
    return found.select("run", "metric", divided(found["value"], found["unit"]))


def not_measured(run: RunRecords) -> list[str]:
    """The metrics that the run's engine cannot measure, because it does not know what they need.

    Parameters
    ----------
    run
        A run.

    Returns
    -------
    list of str
        Names of metrics.
    """
    if live.is_live(run):
        return []
    empty = set(run.meta["summary"].get("not_measured", ())).difference(unrecorded(run.scenario))
    return names(run.scenario, [known for known in definitions() if known.table in empty])


def not_recorded(run: RunRecords) -> list[str]:
    """The tables that the run's experiment does not record; metrics computed from them are missing.

    Parameters
    ----------
    run
        A run.

    Returns
    -------
    list of str
        Keys of `bufferscope.TABLES`.
    """
    return unrecorded(run.scenario)


def _explanation(run: RunRecords, name: str) -> MetricError:
    if exists(run.scenario, name):
        if table := missing(name, unrecorded(run.scenario)):
            return NotMeasuredError(f"{name}: {explanation(run.scenario, table)} (run {run.id})")
        if any_percentile(name) in not_measured(run):
            return NotMeasuredError(f"{name}: not measured by the engine {run.meta['engine']} (run {run.id})")
        return NotMeasuredError(f"{name}: run {run.id} has no record of it in its window from warm-up to duration")
    close = ", ".join(closest(run.scenario, name))
    return UnknownMetricError(f"{name}: no metric of run {run.id} has this name; close: {close}")
