"""The page of a matrix, such as docs/agreement.md: metrics with tolerances, and differences with causes."""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bufferscope.base.fmt import NBSP, number
from bufferscope.store.metadata import Metadata
from bufferscope.store.run import Run
from bufferscope.studies.agreement.comparing import MetricComparison, PointAgreement
from bufferscope.studies.agreement.tolerances import TOLERANCES, Tolerance
from causes import Cause, explained
from making import template
from matrix import Matrix

HEADINGS = {
    "rtt.p50_ms": "RTT p50 (ms)",
    "rtt.p95_ms": "RTT p95 (ms)",
    "goodput.total_mbit": "goodput (Mbit/s)",
    "drops.total": "drops",
    "marks.total": "marks",
    "retransmits.total": "retransmits",
    "share.*": "shares (%)",
}
"""The table's columns, by the tolerances' metrics."""

MOST_SATURATED = 0.01
"""The part of a run's time in which a processor may be saturated. Beyond it, a run shows its machine."""

Verdict = Literal["met", "chance", "missed", "hidden"]
"""`chance`: exceeded by less than the scatter of the repetitions. `hidden`: both percentiles are lost samples."""


@dataclass(frozen=True)
class Difference:
    """An exceeded tolerance."""

    scenario: str
    metric: str
    words: str
    repetitions: str
    """The values of each engine's repetitions, in ascending order."""
    cause: Cause | None


@dataclass(frozen=True)
class Distance:
    """How far one metric of the two engines is apart in all scenarios, in per cent of the reference's."""

    heading: str
    scenarios: int
    middle: float
    """The median, with its sign."""
    half: float
    """The median without its sign ..."""
    most: float
    """... the 90th percentile ..."""
    largest: float
    """... and the largest."""


@dataclass(frozen=True)
class Count:
    """The agreement of one metric in all scenarios."""

    heading: str
    tolerance: str
    met: int
    chance: int
    missed: int


def page(results: Mapping[str, PointAgreement], causes: Sequence[Cause], matrix: Matrix, *, kept: bool = False) -> str:
    """The whole page of a matrix.

    It says if stored runs of the reference were `kept` regardless of the build that made them.
    """
    saturated = {scenario: saturation(point) for scenario, point in results.items() if is_saturated(point)}
    results = comparable(results)
    missed = differences(results, causes)
    every = differences(results, causes, verdicts=("missed", "chance"))
    counts = [_count(results, tolerance) for tolerance in TOLERANCES]
    return template("page.md.jinja").render(
        matrix=matrix,
        headings=list(HEADINGS.values()),
        rows=[(scenario, [cell(_of(point, each)) for each in TOLERANCES]) for scenario, point in results.items()],
        counts=counts,
        met=sum(count.met for count in counts),
        chance=sum(count.chance for count in counts),
        missed=len(missed),
        hidden=sum(verdict(c) == "hidden" for c in _compared(results)),
        without=len(results) - len({difference.scenario for difference in every}),
        beyond=len({difference.scenario for difference in missed}),
        distances=[distance for tolerance in TOLERANCES if (distance := _distance(results, tolerance))],
        causes=[(cause, found) for cause in causes if (found := [d for d in every if d.cause is cause])],
        unexplained=[d for d in missed if d.cause is None],
        within=[d for d in every if d.cause is None and d not in missed],
        files=_files(matrix, {difference.scenario for difference in missed}) if matrix.is_random else {},
        provenance=provenance(run for point in results.values() for run in point.runs),
        kept=kept,
        saturated=saturated,
        repetitions=_range({c.reference.n for c in _compared(results)}),
    )


def comparable(results: Mapping[str, PointAgreement]) -> dict[str, PointAgreement]:
    """The scenarios in which no processor that carried packets was saturated."""
    return {scenario: point for scenario, point in results.items() if not is_saturated(point)}


def is_saturated(point: PointAgreement) -> bool:
    """Whether a processor was saturated for so long that a run shows its machine."""
    return saturation(point) > MOST_SATURATED


def saturation(point: PointAgreement) -> float:
    """The largest part of a run's time in which a processor that carried its packets was saturated."""
    return max(_saturation(run) for run in point.runs)


def _saturation(run: Run) -> float:
    cpu = run.meta["summary"].get("cpu")
    return cpu["saturated_s"] * 1e9 / run.meta["scenario"]["duration_ns"] if cpu else 0


def verdict(comparison: MetricComparison) -> Verdict:
    """Whether the engines agree closely enough, and if not, whether that may be chance."""
    if comparison.within_tolerance is None:
        return "hidden"
    if comparison.within_tolerance:
        return "met"
    return "chance" if comparison.within_spread else "missed"


def differences(
    results: Mapping[str, PointAgreement], causes: Sequence[Cause], *, verdicts: Sequence[Verdict] = ("missed",)
) -> list[Difference]:
    """Every exceeded tolerance (by default, only those exceeded by more than chance), with its cause if known."""
    known = explained(causes)
    return [
        Difference(scenario, c.metric, told(c), _repetitions(c), known.get((scenario, c.metric)))
        for scenario, point in results.items()
        for c in point.judged
        if verdict(c) in verdicts
    ]


def unneeded(results: Mapping[str, PointAgreement], causes: Sequence[Cause]) -> list[tuple[str, str]]:
    """The scenarios and metrics that have a cause although they are within the tolerance."""
    met = {(scenario, c.metric) for scenario, p in results.items() for c in p.judged if verdict(c) in ("met", "hidden")}
    return [place for cause in causes for place in cause.places if place in met]


def cell(comparison: MetricComparison | None) -> str:
    """The text, in bold if the tolerance is exceeded, in italics if that may be chance; empty without a comparison."""
    if comparison is None:
        return ""
    mark = {"missed": "**", "chance": "*"}.get(verdict(comparison), "")
    return f"{mark}{told(comparison)}{mark}"


def told(comparison: MetricComparison) -> str:
    """`110.1 / 109.8 (+0.3 % ± 0.5)`: both values, their difference, and how much of it may be chance."""
    text = f"{NBSP}/{NBSP}".join(map(_written, comparison.centres))
    if math.isnan(comparison.relative):
        return text
    spread = comparison.reach / abs(comparison.centres[1])
    chance = "" if math.isnan(spread) else f"{NBSP}±{NBSP}{spread * 100:.1f}"
    return f"{text} ({comparison.relative * 100:+.1f}{NBSP}%{chance})"


def _repetitions(comparison: MetricComparison) -> str:
    """`45.7 46 / 47.4 47.4`: the values of the one engine's repetitions, then those of the other's."""
    engines = (comparison.value, comparison.reference)
    return " / ".join(" ".join(map(_written, sorted(estimate.values))) for estimate in engines)


def _written(value: float) -> str:
    return "lost" if math.isinf(value) else number(_rounded(value))


def provenance(runs: Iterable[Run]) -> list[tuple[str, str]]:
    """The versions of each engine with which it was measured, without dates."""
    return list(dict.fromkeys((run.engine, _versions(run.meta)) for run in runs))


def _versions(meta: Metadata) -> str:
    versions = f"bufferscope {meta['bufferscope']}"
    if (guest := meta["summary"].get("guest")) is None:
        return versions
    return f"{versions}, Linux {guest['release']}, {guest['qemu']}, image {guest['image']}"


def _range(numbers: set[int]) -> str:
    """`3`, or `1 to 3`."""
    return " to ".join(str(number) for number in sorted({min(numbers, default=0), max(numbers, default=0)}))


def _compared(results: Mapping[str, PointAgreement]) -> Iterator[MetricComparison]:
    return (comparison for point in results.values() for comparison in point.judged)


def _of(point: PointAgreement, tolerance: Tolerance) -> MetricComparison | None:
    """The comparison that the tolerance applies to; of several, the one with the largest difference."""
    own = (c for c in point.judged if tolerance.covers(c.metric))
    return max(own, key=lambda c: abs(c.difference), default=None)


def _count(results: Mapping[str, PointAgreement], tolerance: Tolerance) -> Count:
    verdicts = [verdict(c) for c in _compared(results) if tolerance.covers(c.metric)]
    heading = HEADINGS[tolerance.metric].partition(" (")[0]
    return Count(heading, tolerance.words, *(verdicts.count(kind) for kind in ("met", "chance", "missed")))


def _distance(results: Mapping[str, PointAgreement], tolerance: Tolerance) -> Distance | None:
    """The distances in a metric; None of shares, which are compared in points."""
    if tolerance.factor == 1:
        return None
    of_metric = (c for c in _compared(results) if tolerance.covers(c.metric))
    relative = [100 * c.relative for c in of_metric if not math.isnan(c.relative)]
    if not relative:
        return None
    half, most, largest = np.quantile(np.abs(relative), (0.5, 0.9, 1))
    heading = HEADINGS[tolerance.metric].partition(" (")[0]
    return Distance(heading, len(relative), float(np.median(relative)), float(half), float(most), float(largest))


def _files(matrix: Matrix, scenarios: Container[str]) -> dict[str, str]:
    """The experiment files of these scenarios, which are nowhere but in the matrix."""
    return {
        scenario: entry.experiment.text.strip()
        for entry in matrix.entries
        for scenario in entry.scenarios
        if scenario in scenarios
    }


def _rounded(value: float) -> float:
    return round(value, 1) if value >= 10 else round(value, 2)
