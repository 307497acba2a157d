"""A change of this machine's queues, tried: apply, measure again, keep or undo.

Whatever ends this process before the change is confirmed, the change is undone: by this process, or else by its guard.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bufferscope.analysis.fixing.advice import Advice, Step
from bufferscope.analysis.fixing.improvement import Compared, compared, is_better, is_worth_raising
from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines.live.program import Request
from bufferscope.engines.local import changing, knobs, saved
from bufferscope.engines.local.guard import Guard
from bufferscope.engines.local.saved import SavedState
from bufferscope.interop.live.measuring import Watch, measure
from bufferscope.store.run import Run

RAISE, MOST_RAISES = 0.03, 3
"""By how much the margin shrinks each time that a rate is raised, and how often that is."""
TUNING_S = 480.0
"""No further measurement begins after this time: the guard waits for `MEASURING_S` in all."""
Raised = Callable[[float], Sequence[str]]
"""The commands with margins that are smaller by this."""
Confirm = Callable[["Trial"], bool]
"""Asks whether a change that made things better is to be kept; the answer has to come within a minute."""


@dataclass(frozen=True)
class Trial:
    """A change that was tried."""

    run: Run
    """The measurement after it."""
    compared: tuple[Compared, ...]
    is_better: bool
    is_kept: bool
    undone: str | None
    """What was undone, in a sentence."""
    commands: tuple[str, ...] = ()
    """What was tried last and is in place if it is kept; with raised rates, other commands than in the beginning."""
    raises: int = 0
    """How often the rate was raised."""


def applicable(advice: Advice, number: int | None = None) -> Step:
    """A step of an advice for this machine that can be applied and undone: the first one, or that with a number.

    Raises `InputError` without one.
    """
    chosen = advice.steps if number is None else advice.steps[number - 1 : number]
    for step in chosen:
        if step.are_commands and step.lines and all(_is_undone(line) for line in step.lines):
            return step
    raise InputError("--apply: there is nothing that can be applied to this machine and undone by itself")


def _is_undone(line: str) -> bool:
    return line.startswith(("tc ", "ip ")) or knobs.is_knob(line)


def try_change(
    advice: Advice,
    interface: str,
    commands: Sequence[str],
    request: Request,
    out: Path,
    watch: Watch,
    confirm: Confirm,
    raised: Raised | None = None,
) -> Trial:
    """Apply the commands, measure again, and keep them only if that is better and is confirmed.

    With `raised`, the rates of shapers are then raised step by step. Raises `EngineError` or `InputError`; nothing is
    then changed.
    """
    with _changed(interface, commands) as (state, guard):
        trial = _measured(advice, state, request, out, watch)
        if trial.is_better and raised:
            trial = _tuned(advice, state, request, out, watch, trial, raised)
        if trial.is_better:
            guard.ask()
        if trial.is_better and confirm(trial):
            changing.set_status(state, "kept")
            guard.keep()
            return replace(trial, is_kept=True)
        return replace(trial, undone=changing.undo(force=True))


def _measured(advice: Advice, state: SavedState, request: Request, out: Path, watch: Watch) -> Trial:
    """What a measurement says of the change that is in place."""
    found = measure(request, out, watch)
    after = found.run.meta["summary"]["live"]
    results = compared(advice.queues, after)
    better = is_better(results) and after["complete"]
    return Trial(found.run, results, better, is_kept=False, undone=None, commands=tuple(state["commands"]))


def _tuned(
    advice: Advice, state: SavedState, request: Request, out: Path, watch: Watch, first: Trial, raised: Raised
) -> Trial:
    """Raise the rates while the delay stays short and the goodput grows; the last good rates are in place then."""
    best, deadline = first, time.monotonic() + TUNING_S
    for number in range(1, MOST_RAISES + 1):
        before = state["commands"]
        lines = [line for line in raised(number * RAISE) if line not in before]
        if not lines or time.monotonic() > deadline:
            break
        changing.apply_more(state, lines)
        trial = replace(_measured(advice, state, request, out, watch), raises=number)
        if not (trial.is_better and is_worth_raising(first.compared, best.compared, trial.compared)):
            changing.apply_more(state, [line for line in before if line not in state["commands"]])
            break
        best = trial
    return best


@contextmanager
def _changed(interface: str, commands: Sequence[str]) -> Iterator[tuple[SavedState, Guard]]:
    """The change for the duration of the block, and longer if it was kept."""
    state = changing.prepare(interface, commands)
    file = saved.path()
    try:
        guard = Guard(file)
    except EngineError:
        file.unlink()
        raise
    try:
        changing.apply(state)
        yield state, guard
    finally:
        if state["status"] != "kept":
            # An error of the undoing must not hide why it was undone; the guard tries again.
            with suppress(EngineError, InputError, OSError):
                changing.undo(file, force=True)
            guard.close()
