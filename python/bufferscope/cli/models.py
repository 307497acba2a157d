"""The output of `model`."""

from pathlib import Path

from rich.text import Text

from bufferscope.analysis.live import PHASES, UNKNOWN, TextTable
from bufferscope.base.fmt import number
from bufferscope.cli.live import print_table
from bufferscope.cli.saying import say
from bufferscope.cli.terminal import console
from bufferscope.store.run import Run
from bufferscope.studies.modelling.fitting import HeldPhase, LineFit, PhaseResult
from bufferscope.studies.modelling.line import LOADS, SIDES, ModelledQueue
from bufferscope.studies.modelling.shaping import ShapedLine

NAMES = {"up": "Upload", "down": "Download"}


def print_fit(run: Run, fitted: LineFit, file: Path, chosen: HeldPhase, predicted: ShapedLine | None) -> None:
    """The model, measured beside modelled, whether it fits, and what to do with it."""
    model = fitted.model
    _tell(f"Model of the line to {model.name}: round trip {number(model.rtt_ns / 1e6)} ms.")
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
        limits = ", ".join(f"{way} {kbit} kbit/s" for way, kbit in predicted.kbit.items())
        _tell(
            f"With cake on the router ({limits}), round trips of this {PHASES[chosen.kind]} would take "
            f"{_shown(predicted.result.p95_ms)} ms (p95) instead of {_shown(chosen.modelled.p95_ms)}, by the model."
        )
    way = LOADS[chosen.kind][-1]
    say(f"Next: bufferscope choose {file} --link line.{SIDES[way]}")
    queue = model.queues[way]
    say(
        f"      bufferscope size --rate {queue.rate_bps / 1e6:.4g}mbit --rtt {max(model.rtt_ns / 1e6, 0.001):.4g}ms "
        f"--flows {model.flows[way]}"
    )


def document(run: Run, fitted: LineFit, file: Path, predicted: ShapedLine | None) -> dict[str, object]:
    """The same for `--json`."""
    model = fitted.model
    return {
        "run": str(run.path),
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
        "shaped": {"kbit": dict(predicted.kbit), **_result(predicted.result)} if predicted else None,
        "notes": list(fitted.notes),
    }


def _result(found: PhaseResult) -> dict[str, object]:
    return {"rtt_p50_ms": found.p50_ms, "rtt_p95_ms": found.p95_ms, "goodput_mbit": dict(found.goodput_mbit)}


def _queue(queue: ModelledQueue) -> str:
    if queue.limit_bytes is not None:
        return f"a tail-drop queue of {number(queue.limit_bytes)} bytes"
    return "a queue with flow queueing" if queue.is_known else "a queue that is not known"


def _shown(value: float | None) -> str:
    return UNKNOWN if value is None else number(float(f"{value:.3g}"))


def _tell(text: str) -> None:
    console().print(Text(text))
