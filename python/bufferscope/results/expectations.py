"""Compare the statements of a document with the measurements.

An experiment's `[[expect]]` names a metric, its points, and the band in which we call the document's statement
reproduced. Each of these points is judged separately, by the mean over its repetitions, and the mean's confidence
interval is shown. If the file names a cause for a measurement outside the band, another point has to show it: there,
the same metric must lie inside the band.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bufferscope.base.fmt import margin
from bufferscope.model.expectations import BandComparison, ExpectationEntry, MetricPosition
from bufferscope.results.shared import SharedRepetition, which_share

if TYPE_CHECKING:
    from bufferscope.metrics import Estimate, MetricError, Value
    from bufferscope.store.run import Run


class Verdict(StrEnum):
    """The result of comparing a measurement with an expectation."""

    REPRODUCED = "reproduced"
    """Inside the band."""
    EXPLAINED = "differs-as-explained"
    """Outside the band, the experiment file names the cause, and a run with or without it lies inside."""
    NOT_SHOWN = "differs-cause-not-shown"
    """Outside the band; the experiment file names a cause, but no run shows that it is one."""
    NOT_REPRODUCED = "not reproduced"
    """Outside the band."""
    NOT_APPLICABLE = "not applicable"
    """The runs are not those that the document describes: a point is missing, or `--set` changed the set-up."""

    @property
    def words(self) -> str:
        """The verdict in words for users."""
        told = {Verdict.EXPLAINED: "differs, cause shown", Verdict.NOT_SHOWN: "differs, cause not shown"}
        return told.get(self, self.value)


@dataclass(frozen=True)
class Expectation:
    """One entry of `[[expect]]`."""

    metric: str
    says: str
    band: tuple[float, float]
    where: Mapping[str, str]
    """The points that it is about, by labels of swept keys; if empty, all points."""
    relative_to: Mapping[str, str] | None
    """If given, the measurement is the metric divided by the metric at these points."""
    differs: str | None
    """Why the measurement is known to lie outside the band."""
    group: str | None = None
    """The group of the population whose members it is about."""
    share_in: tuple[float, float] | None = None
    """If given, the measurement is the share of the runs whose metric lies in this interval."""
    shown_by: Mapping[str, str] | None = None
    """The labels that add or remove the cause: at that point, the measurement has to lie in the band."""
    figure: str | None = None
    """Where the document says it: a figure, a table or a section."""

    @property
    def subject(self) -> str:
        """What is measured, in words: the metric, whose it is, and the interval if a share is measured."""
        whose = f" of {self.group}" if self.group else ""
        if self.share_in is None:
            return self.metric + whose
        low, high = self.share_in
        if math.isinf(high):
            return f"{self.metric}{whose}, share from {low:g} on"
        return f"{self.metric}{whose}, share " + (f"up to {high:g}" if math.isinf(low) else f"in {low:g} to {high:g}")


@dataclass(frozen=True)
class ExpectationResult:
    """An expectation at one point, with its measurement."""

    expectation: Expectation
    engine: str
    """The engine that carried the packets."""
    point: Mapping[str, str]
    """The point's swept values, path to label."""
    measured: float | None
    """Mean over the point's runs; +inf if lost probes or unfinished transfers hide it; None if nothing was measured."""
    runs: int
    """The number of runs in the mean; of a ratio, those at this point."""
    verdict: Verdict
    reason: str | None
    """Why it is not applicable, or why it differs."""
    shown_by: str | None = None
    """The point that shows why it differs, with the measurement there; None if no run shows it."""
    unmeasured: bool = False
    """Whether the expectation is about these runs, but their records do not have its metric."""
    position: int | None = None
    """The point's index in the experiment; None if the expectation is about no point of these runs' file."""
    apart: tuple[SharedRepetition, ...] = ()
    """Repetitions in which flows share a flow queue by chance."""
    reach: float | None = None
    """Half the width of the 95 % confidence interval of `measured` over the repetitions. Both points' relative
    intervals, taken as independent, make that of a ratio. None with fewer than two runs or a censored one."""


def evaluate(entries: Sequence[ExpectationEntry], runs: Sequence["Run"]) -> list[ExpectationResult]:
    """Measure and judge expectations, in the form of `run.json`, at each of their points.

    If there are runs on several engines, the runs of each engine are judged separately.
    """
    engines: dict[str, dict[int, _Runs]] = {}
    for run in runs:
        engines.setdefault(run.engine, {}).setdefault(run.position, _Runs()).add(run)
    return [
        evaluated
        for engine, by_position in engines.items()
        for entry in entries
        for evaluated in _evaluate(entry, engine, by_position)
    ]


def concerning(entries: Sequence[ExpectationEntry], position: int) -> list[ExpectationEntry]:
    """The expectations that a run's `run.json` keeps: those about its point, with their numbers from 1.

    Each keeps only the comparisons in which the point takes part. So the space for a sweep's runs is proportional to
    their number and not to its square. `gathered` puts the comparisons together again.
    """
    kept: list[ExpectationEntry] = []
    for number, entry in enumerate(entries, start=1):
        comparisons = [comparison for comparison in entry["comparisons"] if position in _positions(comparison)]
        if comparisons or entry["not_applicable"]:
            kept.append({**entry, "number": number, "comparisons": comparisons})
    return kept


def _positions(comparison: BandComparison) -> Iterator[int | None]:
    """The points that take part in a comparison: those measured, and those that show the cause of a difference."""
    for position in (comparison, comparison.get("shown_by")):
        if position is not None:
            yield from (position["point"], position["relative_to"])


def gathered(runs: Sequence["Run"]) -> list[ExpectationEntry]:
    """The expectations about any of the runs' points, in the file's order, with all their comparisons."""
    entries: dict[str, ExpectationEntry] = {}
    comparisons: dict[str, dict[str, BandComparison]] = {}
    last: Sequence[ExpectationEntry] | None = None
    for run in runs:
        own = run.meta["expectations"]
        if own == last:  # as in all members of a population
            continue
        last = own
        for entry in own:
            words = json.dumps({**entry, "comparisons": []}, sort_keys=True)
            entries.setdefault(words, entry)
            found = comparisons.setdefault(words, {})
            found |= {json.dumps(comparison, sort_keys=True): comparison for comparison in entry["comparisons"]}
    whole: list[ExpectationEntry] = [
        {**entry, "comparisons": sorted(comparisons[words].values(), key=lambda comparison: comparison["point"])}
        for words, entry in entries.items()
    ]
    return sorted(whole, key=lambda entry: entry.get("number", 0))


def judge(expectation: Expectation, measured: float, is_shown: bool = False) -> Verdict:
    """The verdict on a measurement; the band includes its ends. `is_shown`: a run shows the cause of a difference."""
    if is_in(expectation.band, measured):
        return Verdict.REPRODUCED
    if not expectation.differs:
        return Verdict.NOT_REPRODUCED
    return Verdict.EXPLAINED if is_shown else Verdict.NOT_SHOWN


def is_in(band: tuple[float, float], measured: float) -> bool:
    """Whether the band contains the measurement."""
    low, high = band
    return low <= measured <= high


@dataclass(frozen=True)
class _MeasuredPoint:
    """A point with the values of one metric in its runs, or with the errors of runs that lack the metric."""

    values: Mapping[str, str]
    measured: "Sequence[Value | MetricError]"
    share_in: tuple[float, float] | None
    are_members: bool
    """Whether the runs are members of a population. Some of them may lack the metric, because nothing came back."""
    seeds: Sequence[int] = ()
    shared: Sequence[str | None] = ()
    """For each run, which flows share a flow queue in it; None if none do. Empty for members of a population."""

    @property
    def is_chance(self) -> bool:
        """Whether flows share a queue in fewer than half of the runs; otherwise, it is a property of the point."""
        return 0 < 2 * len([why for why in self.shared if why]) < len(self.shared)

    @property
    def judged(self) -> "Sequence[Value | MetricError]":
        """What the measurement is made from: without the repetitions in which flows share a queue by chance."""
        if not self.is_chance:
            return self.measured
        return [value for value, why in zip(self.measured, self.shared, strict=True) if not why]

    @property
    def apart(self) -> Iterator[SharedRepetition]:
        """The repetitions in which flows share a queue."""
        if not self.shared:
            return
        for value, seed, why in zip(self.measured, self.seeds, self.shared, strict=True):
            if why:
                measured = None if isinstance(value, Exception) else value.number
                yield SharedRepetition(seed, measured, not self.is_chance, why)

    @property
    def estimate(self) -> "Estimate":
        from bufferscope.stats.estimate import estimate

        numbers = []
        for value in self.judged:
            if not isinstance(value, Exception):
                numbers.append(value.number)
            elif not self.are_members or (value is self.judged[-1] and not numbers):
                raise value
        if self.share_in is not None:
            numbers = [float(is_in(self.share_in, number)) for number in numbers]
        return estimate(numbers)


@dataclass(frozen=True)
class _Measurement:
    """A point's mean, or a ratio of two; `reach` is NaN if it is unknown."""

    value: float
    reach: float

    def over(self, reference: "_Measurement") -> "_Measurement":
        """The ratio; NaN, which lies in no band, if both are hidden or both are zero."""
        if reference.value == 0:
            return _Measurement(math.inf if self.value > 0 else math.nan, math.nan)
        ratio = self.value / reference.value
        return _Measurement(ratio, math.hypot(self.reach, ratio * reference.reach) / abs(reference.value))

    @property
    def known_reach(self) -> float | None:
        return self.reach if math.isfinite(self.reach) else None


class _Runs:
    """The runs of a point."""

    def __init__(self) -> None:
        self._all: list[Run] = []
        self._groups: dict[str | None, list[Run]] = {}
        self._shared: list[str | None] | None = None

    def add(self, run: "Run") -> None:
        self._all.append(run)
        self._groups.setdefault(run.facts.group, []).append(run)

    def of(self, group: str | None) -> "Sequence[Run]":
        """Those of a group of the population; all without a group."""
        return self._all if group is None else self._groups.get(group, ())

    def shared(self) -> list[str | None]:
        """For each run, which flows share a flow queue. Empty for members of a population, which are no repetitions."""
        if self._all[0].facts.group is not None:
            return []
        if self._shared is None:
            self._shared = [which_share(run) for run in self._all]
        return self._shared


def _evaluate(entry: ExpectationEntry, engine: str, runs: Mapping[int, _Runs]) -> Iterator[ExpectationResult]:
    expectation = _expectation(entry)
    points = _measured(entry, runs)
    if entry["not_applicable"] or not entry["comparisons"]:
        reason = entry["not_applicable"] or "these runs do not have the point that it is about"
        yield ExpectationResult(expectation, engine, expectation.where, None, 0, Verdict.NOT_APPLICABLE, reason)
    for comparison in entry["comparisons"]:
        yield _compare(expectation, comparison, engine, points)


def _measured(entry: ExpectationEntry, runs: Mapping[int, _Runs]) -> dict[int, _MeasuredPoint]:
    """The points of an expectation that have runs, by their positions; their metric is measured in one query."""
    from bufferscope.metrics import one_of_each

    positions = dict.fromkeys(each for comparison in entry["comparisons"] for each in _positions(comparison))
    chosen = {
        position: own
        for position in positions
        if position is not None and position in runs and (own := runs[position].of(entry.get("group")))
    }
    values = one_of_each([run for own in chosen.values() for run in own], entry["metric"])
    share_in = _expectation(entry).share_in
    return {
        position: _MeasuredPoint(
            own[0].point,
            [next(values) for _ in own],
            share_in,
            own[0].facts.group is not None,
            [run.seed for run in own],
            runs[position].shared(),
        )
        for position, own in chosen.items()
    }


def _expectation(entry: ExpectationEntry) -> Expectation:
    """An expectation from its JSON form."""
    return Expectation(
        metric=entry["metric"],
        says=entry["says"],
        band=_interval(entry["band"]),
        group=entry.get("group"),
        share_in=_interval(ends) if (ends := entry.get("share_in")) is not None else None,
        where=entry["where"],
        relative_to=entry["relative_to"],
        differs=entry["differs"],
        shown_by=entry.get("shown_by"),
        figure=entry.get("figure"),
    )


def _interval(ends: Sequence[float | None]) -> tuple[float, float]:
    low, high = ends
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _compare(
    expectation: Expectation, comparison: BandComparison, engine: str, points: Mapping[int, _MeasuredPoint]
) -> ExpectationResult:
    """Measure and judge at one point, or at one point relative to another."""
    from bufferscope.metrics import MetricError

    position = comparison["point"]
    chosen = points.get(position)
    point, size = (chosen.values, len(chosen.judged)) if chosen else (expectation.where, 0)
    concerned = dict.fromkeys((position, comparison["relative_to"]))
    apart = tuple(each for key in concerned if key is not None and key in points for each in points[key].apart)
    try:
        measured = _measure(comparison, points)
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


def _shown_by(expectation: Expectation, comparison: BandComparison, points: Mapping[int, _MeasuredPoint]) -> str | None:
    """The point that shows the cause, because the metric lies in the band there, and the value; None without one."""
    from bufferscope.metrics import MetricError, definition

    elsewhere = comparison.get("shown_by")
    if elsewhere is None:
        return None
    try:
        measured = _measure(elsewhere, points)
    except MetricError:
        return None
    if measured is None or not is_in(expectation.band, measured.value):
        return None
    known = definition(expectation.metric)
    has_unit = expectation.relative_to is None and expectation.share_in is None
    unit = f" {known.unit}" if known and known.unit and has_unit else ""
    chance = "" if measured.known_reach is None else f" ± {margin(measured.known_reach, measured.value)}"
    return f"{', '.join(points[elsewhere['point']].values.values())}: {measured.value:.4g}{chance}{unit}"


def _measure(position: MetricPosition, points: Mapping[int, _MeasuredPoint]) -> _Measurement | None:
    """The metric's mean over a point's runs, divided by another's if `position` names one; None without such runs."""
    measured = _mean(position["point"], points)
    if measured is None or position["relative_to"] is None:
        return measured
    reference = _mean(position["relative_to"], points)
    return None if reference is None else measured.over(reference)


def _mean(position: int, points: Mapping[int, _MeasuredPoint]) -> _Measurement | None:
    if position not in points:
        return None
    found = points[position].estimate
    return _Measurement(found.mean, found.reach)
