"""What a page says of a live measurement: the sentences with which it begins, and its own section."""

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from bufferscope.analysis import live as words
from bufferscope.analysis.live import TextTable
from bufferscope.analysis.opening import Opening
from bufferscope.store.live import live_of
from bufferscope.store.verdict import PhaseVerdict

if TYPE_CHECKING:
    from bufferscope.store.run import Run


@dataclass(frozen=True)
class LiveView:
    """The section about a live measurement. All texts are plain; the page escapes them."""

    answers: tuple[tuple[str, str], ...]
    """For each phase and direction with a queue: the phase in words, and the answer."""
    tables: tuple[TextTable, ...]
    folded: tuple[TextTable, ...]
    """Tables that are shown on request."""
    rpm: tuple[str, ...]
    """What belongs to the numbers of responsiveness."""
    not_reported: tuple[str, ...]


def opening(run: "Run") -> Opening:
    """The five sentences, and the numbers that they rest on."""
    live = run.meta["summary"]["live"]
    verdict = live["verdict"]
    first, *others = verdict["sentences"] or ["This measurement has no result."]
    told = words.numbers(verdict)
    partial = () if live["complete"] else (f"The measurement is not complete: {live['reason'] or 'it ended early'}.",)
    return Opening(
        verdict=first,
        more=(*others, *partial),
        title=told.title,
        columns=told.columns,
        rows=told.rows,
        marked=None,
        commands=(next_command(run),),
        notes=("Explains what the delay means for a call, a game and a page.",),
    )


def next_command(run: "Run") -> str:
    """The line to type after a measurement."""
    return f"bufferscope explain {quote(str(run.path))}"


def view(run: "Run") -> LiveView | None:
    """The section about a run; None if it is no live measurement."""
    live = live_of(run.meta["summary"])
    if live is None:
        return None
    verdict = live["verdict"]
    answers = tuple(
        (f"{words.PHASES[phase['kind']]}, {words.WAYS[where['direction']]}", where["answer"]["text"])
        for phase in verdict["phases"]
        for where in phase["where"]
    )
    happened = words.episodes(live, run.meta["started"])
    tables = (
        happened,
        words.locations(verdict),
        words.directions(verdict),
        words.worst_cases(verdict),
        words.grades(verdict),
    )
    folded = (*(words.ladder(phase) for phase in verdict["phases"]), words.evidence(verdict))
    return LiveView(
        answers=answers,
        tables=tuple(table for table in tables if table.rows),
        folded=tuple(table for table in folded if table.rows),
        rpm=tuple(words.responsiveness(live) or (_rpm(phase) for phase in verdict["phases"])),
        not_reported=tuple(words.not_reported(live)),
    )


def _rpm(phase: PhaseVerdict) -> str:
    found = phase["rpm"]
    name = words.PHASES[phase["kind"]]
    if found["rpm"] is None:
        return f"{name}: no responsiveness: {found['reason'] or 'not measured'}."
    parameters = found["parameters"]
    return (
        f"{name}: {found['rpm']:.0f} round trips a minute, {found['confidence'] or 'unknown'} confidence "
        f"(MAD {parameters['mad']}, ID {parameters['id_ns'] / 1e9:g} s, TMP {100 * parameters['tmp']:g} %, "
        f"SDT {100 * parameters['sdt']:g} %)."
    )
