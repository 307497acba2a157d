"""The explanation of runs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

from bufferscope.analysis.explanation.diagnosis import Diagnosis, diagnose
from bufferscope.analysis.explanation.effects import effects
from bufferscope.analysis.explanation.evidence import Evidence, evidence
from bufferscope.analysis.explanation.flow_words import flow_statements
from bufferscope.analysis.explanation.live import explain_live
from bufferscope.analysis.explanation.observed import explain_observed
from bufferscope.analysis.explanation.queue_words import culprit, queue_statements
from bufferscope.analysis.explanation.sharing_words import sharing_statements
from bufferscope.analysis.explanation.statement import Explanation, Statement
from bufferscope.analysis.explanation.verdicts import verdict
from bufferscope.base.errors import InputError
from bufferscope.engines import engine_of
from bufferscope.metrics.kept import once
from bufferscope.metrics.records import RunRecords
from bufferscope.store.live import live_of

if TYPE_CHECKING:
    from bufferscope.figures.source import ResultRecords


@overload
def explain(what: RunRecords) -> Explanation: ...
@overload
def explain(what: "ResultRecords") -> list[Explanation]: ...
def explain(what: "RunRecords | ResultRecords") -> Explanation | list[Explanation]:
    """Explain runs: where the delay was, since when, whose packets they were, and what held the flows back.

    Nothing is simulated; the explanation comes from the records alone.

    Parameters
    ----------
    what
        A run, or a result with several, as `bufferscope.load` and `bufferscope.run` return them.

    Returns
    -------
    Explanation or list of Explanation
        One for a run; for a result, one for each of its runs, in their order.

    Raises
    ------
    InputError
        `what` is neither a run nor a result.
    StoreError
        A table of a stored run is damaged.

    Examples
    --------
    >>> bs.explain(bs.load("results/home"))[0].verdict                                          # doctest: +SKIP
    """
    if not hasattr(what, "runs") and not hasattr(what, "scenario"):
        raise InputError(f"found {what!r:.60}; allowed: a run or a result, as bufferscope.load returns it")
    runs: Sequence[RunRecords] | None = getattr(what, "runs", None)
    return explain_run(what) if runs is None else [explain_run(run) for run in runs]  # type: ignore[arg-type]


@once
def explain_run(run: RunRecords) -> Explanation:
    """The explanation of one run; nothing is simulated."""
    if live := live_of(run.meta["summary"]):
        return explain_live(run, live)
    found = evidence(run)
    if engine_of(run.engine).observes:
        return explain_observed(found)
    diagnosis = diagnose(found)
    queue, main = diagnosis.queue, diagnosis.main
    return Explanation(
        run=run.id,
        cause=diagnosis.cause,
        port=_port(diagnosis),
        layer=diagnosis.layer,
        flow=culprit(found, queue) if queue else main.sender.flow if main else None,
        statements=tuple(_statements(found, diagnosis)),
    )


def _port(diagnosis: Diagnosis) -> str | None:
    """The port of the cause, if it is in one."""
    if diagnosis.queue:
        return diagnosis.queue.port
    if diagnosis.main:
        return diagnosis.main.port
    return diagnosis.harm.port if diagnosis.harm else None


def _statements(found: Evidence, diagnosis: Diagnosis) -> Iterator[Statement]:
    yield verdict(found, diagnosis)
    if not found.is_changed:
        yield from queue_statements(found, diagnosis)
        yield from sharing_statements(found)
        yield from flow_statements(found, diagnosis)
        yield from effects(found)
    if found.missing:
        tables = ", ".join(found.missing)
        yield Statement("unknown", f"Cannot tell what the tables {tables} would show: they were not recorded.")
