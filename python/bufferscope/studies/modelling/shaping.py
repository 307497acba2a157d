"""What a shaper on the router would do, on the model of a line."""

from dataclasses import dataclass, replace

from bufferscope.analysis.fixing.framing import FRAMINGS, UNKNOWN
from bufferscope.analysis.fixing.rates import shaper_rate
from bufferscope.metrics.records import RunRecords
from bufferscope.store.live import LiveMeasurement
from bufferscope.store.verdict import Direction
from bufferscope.studies.modelling.fitting import HeldPhase, LineFit, PhaseResult, length_s, modelled
from bufferscope.studies.modelling.line import LOADS


@dataclass(frozen=True)
class ShapedLine:
    """The model with shapers (cake) on the router."""

    kbit: dict[Direction, int]
    result: PhaseResult


def shaped(run: RunRecords, fitted: LineFit, phase: HeldPhase, seed: int = 1) -> ShapedLine | None:
    """The same load behind the shapers that `fix` prints; None if no queue of this phase needs one.

    The shapers count the frames of the simulated link, so their rates are those of whole frames less the margin.
    """
    live: LiveMeasurement = run.meta["summary"]["live"]
    rates: dict[Direction, int] = {}
    for way in LOADS[phase.kind]:
        rate = shaper_rate(run, way, FRAMINGS[UNKNOWN])
        if fitted.model.queues[way].limit_bytes and rate and not rate.varies:
            rates[way] = round(rate.goodput_bps / fitted.model.payload_share * (1 - rate.margin) / 1000)
    if not rates:
        return None
    verdict = next(each for each in live["verdict"]["phases"] if each["kind"] == phase.kind)
    model = replace(fitted.model, shapers=rates)
    return ShapedLine(rates, modelled(model, phase.kind, length_s(live, verdict), seed))
