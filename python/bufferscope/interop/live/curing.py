"""A change of this machine's queues, tried: apply, measure again, keep or undo.

Whatever ends this process before the change is confirmed, the change is undone: by this process, or else by its guard.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bufferscope.analysis.fixing.advice import Advice, Step
from bufferscope.analysis.fixing.improvement import Compared, compared, is_better
from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines.live.program import Request
from bufferscope.engines.local import changing, saved
from bufferscope.engines.local.guard import Guard
from bufferscope.engines.local.saved import SavedState
from bufferscope.interop.live.measuring import Watch, measure
from bufferscope.store.run import Run

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


def applicable(advice: Advice) -> Step:
    """The step of an advice for this machine that can be applied and undone. Raises `InputError` without one."""
    for step in advice.steps:
        if step.are_commands and all(line.startswith(("tc ", "ip ")) for line in step.lines):
            return step
    raise InputError("--apply: there is nothing that can be applied to this machine and undone by itself")


def try_change(
    advice: Advice,
    interface: str,
    commands: Sequence[str],
    request: Request,
    out: Path,
    watch: Watch,
    confirm: Confirm,
) -> Trial:
    """Apply the commands, measure again, and keep them only if that is better and is confirmed.

    Raises `EngineError` or `InputError`; nothing is then changed.
    """
    with _changed(interface, commands) as (state, guard):
        found = measure(request, out, watch)
        after = found.run.meta["summary"]["live"]
        results = compared(advice.queues, after)
        better = is_better(results) and after["complete"]
        trial = Trial(found.run, results, better, is_kept=False, undone=None)
        if better:
            guard.ask()
        if better and confirm(trial):
            changing.set_status(state, "kept")
            guard.keep()
            return Trial(found.run, results, better, is_kept=True, undone=None)
        undone = changing.undo(force=True)
        return Trial(found.run, results, better, is_kept=False, undone=undone)


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
