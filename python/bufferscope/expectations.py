"""What a document says, held against what was measured.

An experiment's `[[expect]]` names a metric, the points it is about and the band in which we call the document's words
reproduced. It holds or fails at each of these points by itself; over a point's repetitions the mean counts.
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
    """Outside the band, and the experiment file says why we knowingly lie there."""
    NOT_REPRODUCED = "not reproduced"
    """Outside the band."""
    NOT_APPLICABLE = "not applicable"
    """The runs are not those the document speaks of: a point is missing, or `--set` changed the set-up."""


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
        comparisons = [comparison for comparison in entry["comparisons"] if position in comparison.values()]
        if comparisons or entry["not_applicable"]:
            kept.append({"number": number, **entry, "comparisons": comparisons})
    return kept


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


def judge(expectation: Expectation, measured: float) -> Verdict:
    """Whether a measurement lies in the band; the band's ends belong to it."""
    low, high = expectation.band
    if low <= measured <= high:
        return Verdict.REPRODUCED
    return Verdict.EXPLAINED if expectation.differs else Verdict.NOT_REPRODUCED


def _evaluate(entry: Mapping[str, Any], engine: str, runs: Sequence["Run"]) -> Iterator[Evaluated]:
    expectation = _expectation(entry)
    if entry["not_applicable"] or not entry["comparisons"]:
        reason = entry["not_applicable"] or "no point is the one it is about"
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
    )


def _compare(
    expectation: Expectation, comparison: Mapping[str, int | None], engine: str, runs: Sequence["Run"]
) -> Evaluated:
    """Measure at one point, or at one point relative to another."""
    from bufferscope.metrics import MetricError

    chosen, reference = ([run for run in runs if run.position == comparison[role]] for role in ("point", "relative_to"))
    point = chosen[0].point if chosen else expectation.where
    if not chosen or (expectation.relative_to is not None and not reference):
        reason = "there is no run of a point it is about"
        return Evaluated(expectation, engine, point, None, len(chosen), Verdict.NOT_APPLICABLE, reason)
    try:
        measured = _mean(chosen, expectation.metric)
        if reference:
            measured = _ratio(measured, _mean(reference, expectation.metric))
    except MetricError as error:
        return Evaluated(expectation, engine, point, None, len(chosen), Verdict.NOT_APPLICABLE, str(error))
    verdict = judge(expectation, measured)
    explanation = expectation.differs if verdict is Verdict.EXPLAINED else None
    return Evaluated(expectation, engine, point, measured, len(chosen), verdict, explanation)


def _mean(runs: Sequence["Run"], metric: str) -> float:
    from bufferscope import metrics

    return fmean(float(metrics.metric(run, metric)) for run in runs)


def _ratio(value: float, reference: float) -> float:
    """`value / reference`; not a number where both are hidden or both zero: such a ratio lies in no band."""
    if reference == 0:
        return math.inf if value > 0 else math.nan
    return value / reference
