"""What a document says, held against what was measured.

An experiment's `[[expect]]` names a metric, the points it is about and the band in which we call the document's words
reproduced. It holds or fails at each of these points by itself; over a point's repetitions the mean counts. Where the
file names a cause for a measurement outside the band, another point has to show it: the same metric lies inside there.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bufferscope.store.run import Run


class Verdict(StrEnum):
    """How a measurement stands to an expectation."""

    REPRODUCED = "reproduced"
    """Inside the band."""
    EXPLAINED = "differs-as-explained"
    """Outside the band, the experiment file names the cause, and a run with or without it lies inside."""
    NOT_SHOWN = "differs-cause-not-shown"
    """Outside the band; the experiment file names a cause, but no run shows that it is one."""
    NOT_REPRODUCED = "not reproduced"
    """Outside the band."""
    NOT_APPLICABLE = "not applicable"
    """The runs are not those the document speaks of: a point is missing, or `--set` changed the set-up."""

    @property
    def words(self) -> str:
        """The verdict as people are told it."""
        told = {Verdict.EXPLAINED: "differs, cause shown", Verdict.NOT_SHOWN: "differs, cause not shown"}
        return told.get(self, self.value)


@dataclass(frozen=True)
class Expectation:
    """One entry of `[[expect]]`."""

    metric: str
    says: str
    band: tuple[float, float]
    where: Mapping[str, str]
    """The points it is about, by labels of swept keys; empty: all."""
    relative_to: Mapping[str, str] | None
    """If given, the measurement is the metric divided by the metric at these points."""
    differs: str | None
    """Why the measurement is known to lie outside the band."""
    shown_by: Mapping[str, str] | None = None
    """The labels that add the cause or take it away: there the measurement has to lie in the band."""


@dataclass(frozen=True)
class Evaluated:
    """An expectation at one point, with its measurement."""

    expectation: Expectation
    engine: str
    """What carried the packets."""
    point: Mapping[str, str]
    """The point's swept values, path to label."""
    measured: float | None
    """Mean over the point's runs; +inf when lost probes or unfinished transfers hide it; None when nothing was."""
    runs: int
    """Runs that the mean was taken over."""
    verdict: Verdict
    reason: str | None
    """Why it is not applicable, or why it differs."""
    shown_by: str | None = None
    """The point that shows why it differs, with what was measured there; None where no run shows it."""
    unmeasured: bool = False
    """Whether it is about these runs, but their records do not have its metric."""


def evaluate(entries: Sequence[Mapping[str, Any]], runs: Sequence["Run"]) -> list[Evaluated]:
    """Measure and judge expectations, as `run.json` holds them, at every point they are about.

    Of runs on several engines, each engine's are judged by themselves.
    """
    engines = dict.fromkeys(run.engine for run in runs)
    return [
        evaluated
        for engine in engines
        for entry in entries
        for evaluated in _evaluate(entry, engine, [run for run in runs if run.engine == engine])
    ]


def concerning(entries: Sequence[Mapping[str, Any]], position: int) -> list[dict[str, Any]]:
    """What a run's `run.json` keeps of an experiment's expectations: those, numbered from 1, that are about its point.

    Of each only the comparisons in which the point has a part, so that a sweep's runs take room in proportion to their
    number and not to its square; `gathered` puts them together again.
    """
    kept = []
    for number, entry in enumerate(entries, start=1):
        comparisons = [comparison for comparison in entry["comparisons"] if position in _positions(comparison)]
        if comparisons or entry["not_applicable"]:
            kept.append({"number": number, **entry, "comparisons": comparisons})
    return kept


def _positions(comparison: Mapping[str, Any]) -> Iterator[int | None]:
    """The points that have a part in a comparison: those measured, and those that show why they differ."""
    for place in (comparison, comparison.get("shown_by") or {}):
        yield from (place.get("point"), place.get("relative_to"))


def gathered(runs: Sequence["Run"]) -> list[dict[str, Any]]:
    """The expectations that are about any of the runs' points, in the file's order, with all their comparisons."""
    entries: dict[str, dict[str, Any]] = {}
    for run in runs:
        for entry in run.meta["expectations"]:
            words = {key: value for key, value in entry.items() if key != "comparisons"}
            whole = entries.setdefault(json.dumps(words, sort_keys=True), {**words, "comparisons": {}})
            whole["comparisons"] |= {json.dumps(each, sort_keys=True): each for each in entry["comparisons"]}
    for whole in entries.values():
        whole["comparisons"] = sorted(whole["comparisons"].values(), key=lambda comparison: comparison["point"])
    return sorted(entries.values(), key=lambda whole: whole.get("number", 0))


def judge(expectation: Expectation, measured: float, is_shown: bool = False) -> Verdict:
    """Whether a measurement lies in the band, whose ends belong to it; `is_shown`: a run shows why it does not."""
    if is_in(expectation.band, measured):
        return Verdict.REPRODUCED
    if not expectation.differs:
        return Verdict.NOT_REPRODUCED
    return Verdict.EXPLAINED if is_shown else Verdict.NOT_SHOWN


def is_in(band: tuple[float, float], measured: float) -> bool:
    """Whether the band contains the measurement."""
    low, high = band
    return low <= measured <= high


def _evaluate(entry: Mapping[str, Any], engine: str, runs: Sequence["Run"]) -> Iterator[Evaluated]:
    expectation = _expectation(entry)
    if entry["not_applicable"] or not entry["comparisons"]:
        reason = entry["not_applicable"] or "these runs do not have the point that it is about"
        yield Evaluated(expectation, engine, expectation.where, None, 0, Verdict.NOT_APPLICABLE, reason)
    for comparison in entry["comparisons"]:
        yield _compare(expectation, comparison, engine, runs)


def _expectation(entry: Mapping[str, Any]) -> Expectation:
    """From the JSON form, in which an infinite end of the band is null."""
    low, high = entry["band"]
    return Expectation(
        metric=entry["metric"],
        says=entry["says"],
        band=(-math.inf if low is None else float(low), math.inf if high is None else float(high)),
        where=entry["where"],
        relative_to=entry["relative_to"],
        differs=entry["differs"],
        shown_by=entry.get("shown_by"),
    )


def _compare(expectation: Expectation, comparison: Mapping[str, Any], engine: str, runs: Sequence["Run"]) -> Evaluated:
    """Measure and judge at one point, or at one point relative to another."""
    from bufferscope.metrics import MetricError

    chosen = _at(runs, comparison["point"])
    point = chosen[0].point if chosen else expectation.where
    try:
        measured = _measure(expectation.metric, comparison, runs)
    except MetricError as error:
        reason = str(error)
        return Evaluated(expectation, engine, point, None, len(chosen), Verdict.NOT_APPLICABLE, reason, unmeasured=True)
    if measured is None:
        reason = "a point that it is about has no run"
        return Evaluated(expectation, engine, point, None, len(chosen), Verdict.NOT_APPLICABLE, reason)
    shown_by = None if is_in(expectation.band, measured) else _shown_by(expectation, comparison, runs)
    verdict = judge(expectation, measured, shown_by is not None)
    differs = verdict in (Verdict.EXPLAINED, Verdict.NOT_SHOWN)
    why = expectation.differs if differs else None
    return Evaluated(expectation, engine, point, measured, len(chosen), verdict, why, shown_by)


def _shown_by(expectation: Expectation, comparison: Mapping[str, Any], runs: Sequence["Run"]) -> str | None:
    """The point at which the metric lies in the band once the cause is there or gone, and what it is there."""
    from bufferscope.metrics import MetricError, definition

    elsewhere = comparison.get("shown_by")
    if elsewhere is None:
        return None
    try:
        measured = _measure(expectation.metric, elsewhere, runs)
    except MetricError:
        return None
    if measured is None or not is_in(expectation.band, measured):
        return None
    known = definition(expectation.metric)
    unit = f" {known.unit}" if known and known.unit and expectation.relative_to is None else ""
    return f"{', '.join(_at(runs, elsewhere['point'])[0].point.values())}: {measured:.4g}{unit}"


def _measure(metric: str, place: Mapping[str, Any], runs: Sequence["Run"]) -> float | None:
    """The metric's mean over a point's runs, divided by another's where `place` names one; None without such runs."""
    measured = _mean(_at(runs, place["point"]), metric)
    if measured is None or place["relative_to"] is None:
        return measured
    reference = _mean(_at(runs, place["relative_to"]), metric)
    return None if reference is None else _ratio(measured, reference)


def _at(runs: Sequence["Run"], position: int) -> list["Run"]:
    return [run for run in runs if run.position == position]


def _mean(runs: Sequence["Run"], metric: str) -> float | None:
    from bufferscope import metrics

    return fmean(float(metrics.metric(run, metric)) for run in runs) if runs else None


def _ratio(value: float, reference: float) -> float:
    """`value / reference`; not a number where both are hidden or both zero: such a ratio lies in no band."""
    if reference == 0:
        return math.inf if value > 0 else math.nan
    return value / reference
