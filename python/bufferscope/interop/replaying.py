"""Simulating a stored run again, for what its directory does not have.

A simulation is deterministic, so what can be had by repeating it need not be stored. What comes out is compared with
the totals of the stored run, so that a file never shows another run.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bufferscope import _core
from bufferscope.base.errors import EngineError, InputError, printable
from bufferscope.store.run import Run

Progress = Callable[[int, int], bool]
"""Called with how much is done and how much there is to do; False stops."""


def refuse_changed(run: Run) -> None:
    """Raise `InputError` if a run was changed while it ran."""
    if run.meta["summary"].get("changes"):
        raise InputError(
            f"{run.id}: was changed while it ran, and can't be repeated from its file; run the experiment with the "
            "changed values, and export that"
        )


@contextmanager
def simulating(run: Run) -> Iterator[None]:
    """Turn the core's errors about a simulation of this run into `EngineError` and `InputError`."""
    try:
        yield
    except _core.SimulationError as error:
        raise EngineError(f"{run.id}: {error}") from None
    except ValueError as error:
        raise InputError(f"{run.id}: {printable(str(error))}") from None


def check_same(run: Run, summary: str, what: str) -> None:
    """Raise `InputError` if the totals of the simulation are not those of the stored run; `what` was to be exported."""
    difference = _difference(json.loads(summary), dict(run.meta["summary"]))
    if difference:
        raise InputError(
            f"{run.id}: simulated again, the run came out differently ({difference}), so these would not be its "
            f"{what}; another build of bufferscope ({run.meta['bufferscope']}) made it: run the experiment again"
        )


def _difference(again: dict[str, Any], stored: dict[str, Any]) -> str:
    """What differs between the totals of two runs; empty if nothing does."""
    for key in ("events", "hops", "ended_ns"):
        if again[key] != stored.get(key):
            return f"{key}: {again[key]}, was {stored.get(key)}"
    return next((f"packets by {key[:-1]}" for key in ("ports", "flows") if again[key] != stored.get(key)), "")
