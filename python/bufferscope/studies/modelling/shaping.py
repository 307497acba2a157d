"""What a shaper on the router would do, on the model of a line."""

from dataclasses import dataclass, replace

from bufferscope.store.verdict import Direction
from bufferscope.studies.modelling.fitting import HeldPhase, LineFit, modelled
from bufferscope.studies.modelling.line import LOADS
from bufferscope.studies.modelling.measured import PhaseResult
from bufferscope.studies.modelling.predicting import Prediction, predicted


@dataclass(frozen=True)
class ShapedLine(Prediction):
    """The model with shapers (cake) on the router."""

    kbit: dict[Direction, int]
    """The rate of each shaper, in kbit/s."""
    before: PhaseResult
    """What probes see without them: measured, or by the model if the measurement had no probes."""


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
    found = predicted(replace(fitted.model, shapers=rates), probed, seed)
    return ShapedLine(found.result, found.p95_range_ms, found.lost_range, rates, before)
