"""The output of `fix`."""

import select
import sys
from collections.abc import Iterator

from rich.text import Text

from bufferscope.analysis import live as words
from bufferscope.analysis.fixing.advice import Advice, Step
from bufferscope.analysis.fixing.improvement import goodput_bps, table
from bufferscope.analysis.fixing.located import NAMES
from bufferscope.analysis.fixing.rates import ShaperRate
from bufferscope.base.errors import InputError
from bufferscope.cli.live import print_table
from bufferscope.cli.saying import note, say
from bufferscope.cli.terminal import console
from bufferscope.interop.live.curing import Trial
from bufferscope.store.run import Run


def print_advice(run: Run, advice: Advice) -> None:
    """The queues, and each step: where, what to type, why, and how to undo it."""
    for queue in advice.queues:
        added = words.percentile(queue.phase["numbers"]["added"], "p95_ns")
        grade = f", grade {queue.phase['grade']}" if queue.phase["grade"] else ""
        _tell(f"{NAMES[queue.direction].capitalize()}: packets wait at {queue.answer}; {added} ms (p95){grade}.")
    for number, step in enumerate(advice.steps, start=1):
        print_step(step, number if len(advice.steps) > 1 else None)
    if advice.reasons:
        say("")
    for reason in advice.reasons:
        _tell(reason)
    if advice.steps:
        say("")
        _tell("Then measure again, and compare: bufferscope measure, bufferscope compare.")
        if advice.rates:
            _tell("What a shaper would do, before anything is changed: bufferscope model.")
        if advice.target == "openwrt":
            _tell(
                "For another router: --device linux, opnsense, pfsense, mikrotik. Without access to it: --device "
                "this-machine."
            )
    elif not advice.queues:
        say("")
        _tell(f"There is nothing to set. The measurement: {run.path}")


def print_step(step: Step, number: int | None = None) -> None:
    """One step, with its number if there are several."""
    say("")
    _tell(f"{step.where}:" if number is None else f"{number}. {step.where}:")
    say("")
    for line in step.lines:
        say(f"    {line}")
    say("")
    if step.why:
        _tell(f"Why: {step.why}")
    for text in step.notes:
        _tell(f"Note: {text}")
    if step.undo:
        _tell("Undo:" if step.are_commands else f"Undo: {'; '.join(step.undo)}.")
        for line in step.undo if step.are_commands else ():
            say(f"    {line}")


def document(run: Run, advice: Advice) -> dict[str, object]:
    """Advice for `--json`; delays are in ms, rates in kbit/s."""
    return {
        "run": str(run.path),
        "for": advice.target or None,
        "queues": [
            {
                "direction": queue.direction,
                "place": queue.place,
                "address": queue.location["address"],
                "answer": queue.answer,
                "phase": queue.phase["kind"],
                "grade": queue.phase["grade"],
                "added_p95_ms": _finite_ms(queue.added_p95_ns),
            }
            for queue in advice.queues
        ],
        "rates": [_rate(rate) for rate in advice.rates],
        "steps": [_step(step) for step in advice.steps],
        "reasons": list(advice.reasons),
    }


def trial_document(trial: Trial, step: Step, unit: str | None) -> dict[str, object]:
    """A change that was tried, for `--json`."""
    return {
        "step": _step(step),
        "run": str(trial.run.path),
        "directions": [
            {
                "direction": each.direction,
                "added_p95_ms": [_finite_ms(each.delay_ns(phase)) for phase in (each.before, each.after)],
                "goodput_mbit": [
                    None if phase is None or (rate := goodput_bps(phase, each.direction)) is None else rate / 1e6
                    for phase in (each.before, each.after)
                ],
                "better": each.is_better,
            }
            for each in trial.compared
        ],
        "commands": list(trial.commands),
        "raises": trial.raises,
        "better": trial.is_better,
        "kept": trial.is_kept,
        "undone": trial.undone,
        "unit": unit,
    }


def print_comparison(trial: Trial) -> None:
    """Before and after side by side."""
    print_table(table(trial.compared))


def print_end(trial: Trial, unit: str | None) -> None:
    """Whether the change is kept."""
    if trial.raises:
        _tell(f"The rate was raised in {trial.raises} steps; now: {'; '.join(trial.commands)}")
    if trial.is_kept:
        _tell("Kept until the next start of this machine. To undo it: bufferscope fix --undo")
        _tell(unit or "To make it permanent: bufferscope fix --persist")
        return
    if not trial.is_better:
        _tell("That is not better, so it is not kept.")
    _tell(trial.undone or "It was undone.")


def confirm(question: str, within_s: float | None) -> bool:
    """Ask on the terminal. Raises `InputError` without one; no answer in time counts as no."""
    if not sys.stdin.isatty():
        raise InputError("there is no terminal to ask on; --yes does not ask")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    readable, _, _ = select.select([sys.stdin], [], [], within_s)
    if not readable:
        note("")
        return False
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell(text: str) -> None:
    console().print(Text(text))


def _step(step: Step) -> dict[str, object]:
    return {
        "where": step.where,
        "why": step.why,
        "commands" if step.are_commands else "settings": list(step.lines),
        "undo": list(step.undo),
        "notes": list(step.notes),
    }


def _rate(rate: ShaperRate) -> dict[str, object]:
    return {
        "direction": rate.direction,
        "goodput_kbit": rate.goodput_bps / 1000,
        "margin": rate.margin,
        "variation": rate.variation,
        "varies": rate.varies,
        **({} if rate.varies else {"link_kbit": rate.link_kbit, "packet_kbit": rate.packet_kbit}),
        **(dict(_bounds(rate)) if rate.varies else {}),
    }


def _bounds(rate: ShaperRate) -> Iterator[tuple[str, int]]:
    yield "lowest_kbit", rate.lowest_kbit
    yield "base_kbit", rate.usual_kbit
    yield "highest_kbit", rate.highest_kbit


def _finite_ms(time_ns: float | None) -> float | None:
    return None if time_ns is None or time_ns == float("inf") else time_ns / 1e6
