"""What `bufferscope import` says of the runs that it made: the verdict, the table, and the line to type next."""

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

from bufferscope.analysis.explanation import Cause, explain_run
from bufferscope.analysis.opening import Opening
from bufferscope.cli.tables import number

if TYPE_CHECKING:
    from bufferscope.store.run import Run

MOST_SHOWN = 4
"""More runs than this are not shown one by one."""


def opening(runs: "Sequence[Run]") -> Opening:
    """What the page of these runs begins with."""
    shown = runs[:MOST_SHOWN]
    verdicts = [f"{_label(run, runs)}{explain_run(run).verdict}" for run in shown]
    names = dict.fromkeys(name for run in shown for name in run.metrics)
    command, about = next_command(runs)
    left = (
        (f"The page shows {len(runs)} runs; this table has the first {len(shown)}.",) if len(runs) > len(shown) else ()
    )
    return Opening(
        verdict=verdicts[0],
        more=tuple(verdicts[1:]),
        title="What was measured",
        columns=("Metric", *(_label(run, runs).removesuffix(": ") or "Value" for run in shown)),
        rows=tuple((name, *(_value(run, name) for run in shown)) for name in names),
        marked=None,
        commands=(command,),
        notes=(about, *left),
    )


def next_command(runs: "Sequence[Run]") -> tuple[str, str]:
    """The command that suits what was imported, and what to know about it."""
    if len(runs) > 1:
        several = " ".join(dict.fromkeys(quote(str(run.path)) for run in runs[:MOST_SHOWN]))
        about = "the runs" if len(runs) <= MOST_SHOWN else f"the first {MOST_SHOWN} runs"
        return f"bufferscope compare {several}", f"Compares {about}, metric by metric."
    found = explain_run(runs[0])
    own_ms = found.statements[0].numbers.get("own_ms")
    if found.cause is Cause.QUEUE and isinstance(own_ms, float) and own_ms > 0:
        line = f"bufferscope size --rate RATE --rtt {own_ms:.3g}ms"
        return line, "With the RATE of your line, as in 20mbit, this finds the queue length that it needs."
    return (
        f"bufferscope explain {quote(str(runs[0].path))}",
        "Explains the round trips, and says what is not known.",
    )


def _label(run: "Run", runs: "Sequence[Run]") -> str:
    """The label of a run among several."""
    return f"{run.experiment}, {run.meta['title']}: " if len(runs) > 1 else ""


def _value(run: "Run", name: str) -> str:
    return number(run.metrics[name]) if name in run.metrics else "-"
