"""Compare the statements of a document with the measurements.

An experiment's `[[expect]]` names a metric, its points, and the band in which we call the document's statement
reproduced. Each of these points is judged separately, by the mean over its repetitions, and the mean's confidence
interval is shown. If the file names a cause for a measurement outside the band, another point has to show it: there,
the same metric must lie inside the band.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bufferscope.base.fmt import margin
from bufferscope.model.expectations import BandComparison, ExpectationEntry
from bufferscope.results.entries import expectation_of, positions
from bufferscope.results.points import MeasuredPoint, PointRuns, measure
from bufferscope.results.verdicts import Expectation, ExpectationResult, Verdict, is_in, judge

if TYPE_CHECKING:
    from bufferscope.store.run import Run


def evaluate(entries: Sequence[ExpectationEntry], runs: Sequence["Run"]) -> list[ExpectationResult]:
    """Measure and judge expectations, in the form of `run.json`, at each of their points.

    If there are runs on several engines, the runs of each engine are judged separately.
    """
    engines: dict[str, dict[int, PointRuns]] = {}
    for run in runs:
        engines.setdefault(run.engine, {}).setdefault(run.position, PointRuns()).add(run)
    return [
        evaluated
        for engine, by_position in engines.items()
        for entry in entries
        for evaluated in _evaluate(entry, engine, by_position)
    ]


def _evaluate(entry: ExpectationEntry, engine: str, runs: Mapping[int, PointRuns]) -> Iterator[ExpectationResult]:
    expectation = expectation_of(entry)
    points = _measured(entry, runs)
    if entry["not_applicable"] or not entry["comparisons"]:
        reason = entry["not_applicable"] or "these runs do not have the point that it is about"
        yield ExpectationResult(expectation, engine, expectation.where, None, 0, Verdict.NOT_APPLICABLE, reason)
    for comparison in entry["comparisons"]:
        yield _compare(expectation, comparison, engine, points)


def _measured(entry: ExpectationEntry, runs: Mapping[int, PointRuns]) -> dict[int, MeasuredPoint]:
    """The points of an expectation that have runs, by their positions; their metric is measured in one query."""
    from bufferscope.metrics import one_of_each

    concerned = dict.fromkeys(each for comparison in entry["comparisons"] for each in positions(comparison))
    chosen = {
        position: own
        for position in concerned
        if position is not None and position in runs and (own := runs[position].of(entry.get("group")))
    }
    values = one_of_each([run for own in chosen.values() for run in own], entry["metric"])
    share_in = expectation_of(entry).share_in
    return {
        position: MeasuredPoint(
            own[0].point,
            [next(values) for _ in own],
            share_in,
            own[0].facts.group is not None,
            [run.seed for run in own],
            runs[position].shared(),
        )
        for position, own in chosen.items()
    }


def _compare(
    expectation: Expectation, comparison: BandComparison, engine: str, points: Mapping[int, MeasuredPoint]
) -> ExpectationResult:
    """Measure and judge at one point, or at one point relative to another."""
    from bufferscope.metrics import MetricError

    position = comparison["point"]
    chosen = points.get(position)
    point, size = (chosen.values, len(chosen.judged)) if chosen else (expectation.where, 0)
    concerned = dict.fromkeys((position, comparison["relative_to"]))
    apart = tuple(each for key in concerned if key is not None and key in points for each in points[key].apart)
    try:
        measured = measure(comparison, points)
    except MetricError as error:
        reason = str(error)
        none = Verdict.NOT_APPLICABLE
        return ExpectationResult(
            expectation, engine, point, None, size, none, reason, unmeasured=True, position=position, apart=apart
        )
    if measured is None:
        reason = "a point that it is about has no run"
        return ExpectationResult(
            expectation, engine, point, None, size, Verdict.NOT_APPLICABLE, reason, position=position, apart=apart
        )
    shown_by = None if is_in(expectation.band, measured.value) else _shown_by(expectation, comparison, points)
    verdict = judge(expectation, measured.value, shown_by is not None)
    differs = verdict in (Verdict.EXPLAINED, Verdict.NOT_SHOWN)
    why = expectation.differs if differs else None
    value, reach = measured.value, measured.known_reach
    return ExpectationResult(
        expectation, engine, point, value, size, verdict, why, shown_by, position=position, reach=reach, apart=apart
    )


def _shown_by(expectation: Expectation, comparison: BandComparison, points: Mapping[int, MeasuredPoint]) -> str | None:
    """The point that shows the cause, because the metric lies in the band there, and the value; None without one."""
    from bufferscope.metrics import MetricError, definition

    elsewhere = comparison.get("shown_by")
    if elsewhere is None:
        return None
    try:
        measured = measure(elsewhere, points)
    except MetricError:
        return None
    if measured is None or not is_in(expectation.band, measured.value):
        return None
    known = definition(expectation.metric)
    has_unit = expectation.relative_to is None and expectation.share_in is None
    unit = f" {known.unit}" if known and known.unit and has_unit else ""
    chance = "" if measured.known_reach is None else f" ± {margin(measured.known_reach, measured.value)}"
    return f"{', '.join(points[elsewhere['point']].values.values())}: {measured.value:.4g}{chance}{unit}"
