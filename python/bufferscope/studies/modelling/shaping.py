"""What a shaper on the router would do, on the model of a line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from bufferscope.store.verdict import Direction
from bufferscope.studies.modelling.fitting import HeldPhase, LineFit, modelled
from bufferscope.studies.modelling.line import LOADS
from bufferscope.studies.modelling.measured import PhaseResult

SIMULATIONS = 5
"""How often the shaped line is simulated: the first burst of a download differs from one run to the next."""


@dataclass(frozen=True)
class ShapedLine:
    """The model with shapers (cake) on the router."""

    kbit: dict[Direction, int]
    """The rate of each shaper, in kbit/s."""
    before: PhaseResult
    """What probes see without them: measured, or by the model if the measurement had no probes."""
    result: PhaseResult
    """What they see with them, by the model: the medians of several simulations."""
    p95_range_ms: tuple[float, float] | None
    """The shortest and the longest 95th percentile of these simulations; None if one is among lost probes."""


def shaped(fitted: LineFit, phase: HeldPhase, seed: int = 1) -> ShapedLine | None:
    """The same load behind the shapers that `fix` prints; None if no queue of this phase needs one.

    The shapers count the frames of the simulated link, so their rates are those of whole frames less the margin.
    """
    rates: dict[Direction, int] = {}
    for way in LOADS[phase.kind]:
        rate_bps = fitted.line.directions[way].shaper_bps
        if fitted.model.queues[way].limit_bytes and rate_bps:
            rates[way] = round(rate_bps / 1000)
    if not rates:
        return None
    has_probes = phase.phase.trips == "probes"
    probed = replace(phase.phase, trips="probes")
    before = phase.measured if has_probes else modelled(fitted.model, probed, seed)
    shaped_model = replace(fitted.model, shapers=rates)
    found = [modelled(shaped_model, probed, seed + each) for each in range(SIMULATIONS)]
    tails = [each.p95_ms for each in found]
    known = sorted(each for each in tails if each is not None)
    result = PhaseResult(
        _median([each.p50_ms for each in found]),
        _median(tails),
        {way: median(each.goodput_mbit[way] for each in found) for way in LOADS[phase.kind]},
    )
    return ShapedLine(rates, before, result, (known[0], known[-1]) if len(known) == len(tails) else None)


def _median(values: Sequence[float | None]) -> float | None:
    """The median, in which lost probes are infinitely long; None if it is among them."""
    found = median(float("inf") if each is None else each for each in values)
    return None if found == float("inf") else found
