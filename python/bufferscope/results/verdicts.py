"""What a document states, the band of it, and the verdict on a measurement."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bufferscope.results.shared import SharedRepetition


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
