"""The output of `model`."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from bufferscope.analysis.fixing.advising import OWN
from bufferscope.analysis.live import PHASES, UNKNOWN, TextTable
from bufferscope.base.fmt import number
from bufferscope.cli.live import print_table
from bufferscope.cli.saying import say
from bufferscope.cli.terminal import console
from bufferscope.store.run import Run
from bufferscope.studies.modelling.fitting import HeldPhase, LineFit
from bufferscope.studies.modelling.line import LOADS, SIDES, ModelledQueue
from bufferscope.studies.modelling.measured import PhaseResult
from bufferscope.studies.modelling.predicting import SIMULATIONS
from bufferscope.studies.modelling.shaping import ShapedLine

NAMES = {"up": "Upload", "down": "Download"}


def print_fit(fitted: LineFit, file: Path, chosen: HeldPhase, predicted: ShapedLine | None) -> None:
    """The model, measured beside modelled, whether it fits, and what to do with it."""
    model = fitted.model
    _tell(f"Model of the line {model.name}: round trip {number(model.rtt_ns / 1e6)} ms.")
    for way, queue in model.queues.items():
        if way in model.flows:
            _tell(f"{NAMES[way]}: {number(float(f'{queue.rate_bps / 1e6:.3g}'))} Mbit/s, {_queue(queue)}.")
    rows = [
        (PHASES[phase.kind], name, _shown(measured), _shown(modelled), "yes" if good else "no")
        for phase in fitted.phases
        for name, measured, modelled, good in phase.rows()
    ]
    print_table(TextTable("Measured and modelled", ("Phase", "Number", "Measured", "Modelled", "Fits"), tuple(rows)))
    for note in fitted.notes:
        _tell(f"Note: {note}")
    say(f"Written: {file}")
    if not fitted.fits:
        _tell("The model does not fit: do not rely on what it predicts.")
        return
    if predicted:
        _tell(sentence(fitted, chosen, predicted))
    way = LOADS[chosen.kind][-1]
    say(f"Next: bufferscope choose {file} --link line.{SIDES[way]}")
    queue = model.queues[way]
    say(
        f"      bufferscope size --rate {queue.rate_bps / 1e6:.4g}mbit --rtt {max(model.rtt_ns / 1e6, 0.001):.4g}ms "
        f"--flows {model.flows[way]}"
    )


def sentence(fitted: LineFit, chosen: HeldPhase, predicted: ShapedLine) -> str:
    """What a call would gain by cake, by the model."""
    rates = " and ".join(f"{kbit / 1000:.3g} Mbit/s {way}" for way, kbit in predicted.kbit.items())
    places = {fitted.line.directions[way].place for way in predicted.kbit}
    where = "this machine" if places and places <= set(OWN) else "the router"
    load = PHASES[chosen.kind]
    return f"With cake on {where} at {rates}, packets of a call during this {load} would {_fate(predicted)}"


def _fate(predicted: ShapedLine) -> str:
    """How long packets take with the shapers and without, as far as that is known."""
    instead = f"instead of {_shown(predicted.before.p95_ms)}, by the model."
    least, most = predicted.lost_range
    lost = f"{100 * least:.1f} to {100 * most:.1f} % of them are lost"
    if predicted.tail == "lost":
        return f"have no round trip (p95), because {lost}, by the model."
    if predicted.tail == "unknown" or predicted.p95_range_ms is None:
        median = f"take {_shown(predicted.result.p50_ms)} ms (round trip, p50), by the model"
        return f"{median}. It cannot tell their p95, because {lost}."
    if predicted.tail == "bounds":
        shortest, longest = (_shown(each) for each in predicted.p95_range_ms)
        why = f"The first burst of the connections decides: the bounds are those of {SIMULATIONS} simulations."
        return f"take {shortest} to {longest} ms (round trip, p95) {instead} {why}"
    return f"take {_shown(predicted.result.p95_ms)} ms (round trip, p95) {instead}"


def document(runs: Sequence[Run], fitted: LineFit, file: Path, predicted: ShapedLine | None) -> dict[str, object]:
    """The same for `--json`."""
    model = fitted.model
    return {
        "run": str(runs[0].path),
        "runs": [str(run.path) for run in runs],
        "file": str(file),
        "fits": fitted.fits,
        "rtt_ms": model.rtt_ns / 1e6,
        "congestion": model.congestion,
        "directions": {
            way: {
                "rate_mbit": queue.rate_bps / 1e6,
                "varies": bool(queue.steps),
                "qdisc": queue.qdisc,
                "limit_bytes": queue.limit_bytes,
                "limit_packets": queue.limit_packets,
                "known": queue.is_known,
                "flows": model.flows[way],
            }
            for way, queue in model.queues.items()
            if way in model.flows
        },
        "phases": [
            {
                "phase": phase.kind,
                "fits": phase.fits,
                "measured": _result(phase.measured),
                "modelled": _result(phase.modelled),
            }
            for phase in fitted.phases
        ],
        "shaped": {
            "kbit": dict(predicted.kbit),
            "before": _result(predicted.before),
            **_result(predicted.result),
            "rtt_p95_range_ms": predicted.p95_range_ms,
            "rtt_p95_kind": predicted.tail,
            "lost_range": predicted.lost_range,
        }
        if predicted
        else None,
        "notes": list(fitted.notes),
    }


def _result(found: PhaseResult) -> dict[str, object]:
    return {"rtt_p50_ms": found.p50_ms, "rtt_p95_ms": found.p95_ms, "goodput_mbit": dict(found.goodput_mbit)}


def _queue(queue: ModelledQueue) -> str:
    if queue.limit_bytes is not None:
        return f"a tail-drop queue of {_size(queue)}"
    return "a queue with flow queueing" if queue.is_known else "a queue that is not known"


def _size(queue: ModelledQueue) -> str:
    packets = queue.limit_packets
    return f"{number(queue.limit_bytes or 0)} bytes" if packets is None else f"{number(packets)} packets"


def _shown(value: float | None) -> str:
    return UNKNOWN if value is None else number(float(f"{value:.3g}"))


def _tell(text: str) -> None:
    console().print(Text(text))
