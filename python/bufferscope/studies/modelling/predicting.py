"""What probes would see on a model: several simulations, and how far they agree.

Two things decide about a percentile that no measurement shows. One is how the connections of the load begin: slow start
fills a queue before anything can stop it, and the first burst differs from one start to the next. The other is the
share of lost probes: they count as infinitely long, so the 95th percentile jumps if about 5 % are lost. A prediction
that depends on either says so, and is no single number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from bufferscope.studies.modelling.fitting import modelled
from bufferscope.studies.modelling.line import LineModel, LoadOpening
from bufferscope.studies.modelling.measured import MeasuredPhase, PhaseResult

OPENINGS = (
    *(LoadOpening(stagger_ms) for stagger_ms in (0.0, 0.3, 1.0, 3.0, 10.0) for _ in range(2)),
    *(LoadOpening(has_ports=True) for _ in range(6)),
)
"""The openings that are simulated, each with a seed of its own."""
ROUNDS = 3
"""How often each is simulated if the simulations of the first round do not agree: bounds need more of them."""
SIMULATIONS = ROUNDS * len(OPENINGS)
"""The simulations that give bounds."""
SPREAD = 0.15
"""Simulations of which one differs from the median by more than this part ..."""
SPREAD_MS = 2.0
"""... and by more than this time do not agree on a number."""
TAIL = 0.95
NEAR = 0.02
"""If the share of lost probes is this near to 1 - `TAIL`, that percentile may be among lost probes or not."""

Tail = Literal["number", "bounds", "lost", "unknown"]


@dataclass(frozen=True)
class Prediction:
    """What probes would see, by several simulations of a model."""

    result: PhaseResult
    """The medians of the simulations; the 95th percentile is None if it is among lost probes, or not known."""
    p95_range_ms: tuple[float, float] | None
    """The shortest and the longest 95th percentile of the simulations; None as in `result`."""
    lost_range: tuple[float, float]
    """The smallest and the largest part of the probes that were lost in a simulation."""

    @property
    def tail(self) -> Tail:
        """Whether the simulations agree on the 95th percentile (`number`), it depends on how the connections begin
        (`bounds`), it is among lost probes (`lost`), or may be among them or not (`unknown`).
        """
        least, most = self.lost_range
        if least > 1 - TAIL + NEAR:
            return "lost"
        if most >= 1 - TAIL - NEAR or self.p95_range_ms is None or self.result.p95_ms is None:
            return "unknown"
        middle = self.result.p95_ms
        far = max(middle - self.p95_range_ms[0], self.p95_range_ms[1] - middle)
        return "number" if far <= max(SPREAD * middle, SPREAD_MS) else "bounds"


def predicted(model: LineModel, phase: MeasuredPhase, seed: int = 1) -> Prediction:
    """The numbers of a phase on a model, as far as they do not depend on what is not known."""
    found: list[PhaseResult] = []
    for _ in range(ROUNDS):
        for opening in OPENINGS:
            found.append(modelled(replace(model, opening=opening), phase, seed + len(found)))
        if summarised(found).tail != "bounds":
            break
    return summarised(found)


def summarised(found: Sequence[PhaseResult]) -> Prediction:
    """The prediction that these simulations make.

    >>> one = PhaseResult(20.0, 60.0, {"down": 9.0}, 0.0)
    >>> summarised([one, one, replace(one, p95_ms=61.0)]).tail
    'number'
    >>> summarised([one, one, replace(one, p95_ms=90.0)]).tail
    'bounds'
    >>> summarised([one, replace(one, lost=0.04)]).tail, summarised([replace(one, p95_ms=None, lost=0.08)]).tail
    ('unknown', 'lost')
    """
    losses = [each.lost or 0.0 for each in found]
    tails = [each.p95_ms for each in found if each.p95_ms is not None]
    bounds = (min(tails), max(tails)) if len(tails) == len(found) else None
    rates = {way: median(each.goodput_mbit[way] for each in found) for way in found[0].goodput_mbit}
    middle = _median([each.p50_ms for each in found])
    made = Prediction(
        PhaseResult(middle, _median([each.p95_ms for each in found]), rates, median(losses)),
        bounds,
        (min(losses), max(losses)),
    )
    if made.tail in ("number", "bounds"):
        return made
    return replace(made, result=replace(made.result, p95_ms=None), p95_range_ms=None)


def _median(values: Sequence[float | None]) -> float | None:
    """The median, in which lost probes are infinitely long; None if it is among them."""
    found = median(float("inf") if each is None else each for each in values)
    return None if found == float("inf") else found
