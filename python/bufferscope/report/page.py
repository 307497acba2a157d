"""The page's content: from results to what the template shows, every text ready to be read."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from bufferscope.figures.source import points
from bufferscope.report import drawing, metrics_table, parameters, verdicts
from bufferscope.report import runs as stored
from bufferscope.report.prose import markdown
from bufferscope.report.words import plural

if TYPE_CHECKING:
    from bufferscope.result import Result

DEFAULT_FIGURES = ("queue_length", "rtt", "cwnd", "goodput")
"""What is drawn for an experiment that names no figures."""


@dataclass(frozen=True)
class ExperimentView:
    """One section of the page."""

    name: str
    title: str
    source: str
    description: Markup
    notes: Markup
    overrides: tuple[str, ...]
    figures: tuple[drawing.FigureView, ...]
    missing: tuple[drawing.Missing, ...]
    verdicts: tuple[verdicts.VerdictView, ...]
    parameters: tuple[parameters.Table, ...]
    metrics: metrics_table.MetricsTable
    runs: tuple[stored.RunView, ...]
    commands: tuple[str, ...]
    """How to make the runs again, one for each engine."""
    provenance: tuple[str, ...]
    """What made them, one for each engine."""


@dataclass(frozen=True)
class PageView:
    """The whole page."""

    title: str
    summary: str
    counts: tuple[tuple[str, str, int], ...]
    """Verdicts as CSS class, words and number."""
    experiments: tuple[ExperimentView, ...]


def page_view(results: Sequence["Result"], page: Path, step: Callable[[int, int], None] | None = None) -> PageView:
    """What the page at `page` shows of these results; writes the figures' pictures beside it.

    `step` is told, before each result, how many are drawn and how many there are.
    """

    def drawn(done: int, result: "Result") -> ExperimentView:
        if step:
            step(done, len(results))
        return _experiment(result, page)

    experiments = tuple(drawn(done, result) for done, result in enumerate(results))
    runs = sum(len(view.runs) for view in experiments)
    title = (
        experiments[0].title if len(experiments) == 1 else "Bufferbloat: what the documents say, and what was measured"
    )
    summary = f"{plural(len(experiments), 'experiment')}, {plural(runs, 'run')}"
    verdict_kinds = Counter((v.kind, v.verdict) for view in experiments for v in view.verdicts)
    order = [kind.replace(" ", "-") for kind in verdicts.SYMBOLS]
    counts = sorted(((kind, words, n) for (kind, words), n in verdict_kinds.items()), key=lambda c: order.index(c[0]))
    return PageView(title, summary, tuple(counts), experiments)


def _experiment(result: "Result", page: Path) -> ExperimentView:
    document = result.document
    grouped = points(result)
    labels = {run.id: point.label for point in grouped for run in point.runs}
    by_engine = result.by_engine
    drawn = [drawing.draw(result, name, page) for name in document.get("figures") or DEFAULT_FIGURES]
    return ExperimentView(
        name=result.experiment,
        title=document.get("title") or result.runs[0].meta["title"],
        source=document.get("source") or "",
        description=markdown(document.get("description") or ""),
        notes=markdown(document.get("notes") or ""),
        overrides=tuple(result.overrides),
        figures=tuple(figure for figure in drawn if isinstance(figure, drawing.FigureView)),
        missing=tuple(figure for figure in drawn if isinstance(figure, drawing.Missing)),
        verdicts=tuple(verdicts.view(evaluated, len(by_engine) > 1) for evaluated in result.expectations),
        parameters=tuple(parameters.tables(grouped)),
        metrics=metrics_table.table(grouped),
        runs=tuple(stored.view(labels[run.id], run, page) for run in result.runs),
        commands=tuple(stored.command(runs) for runs in by_engine.values()),
        provenance=tuple(stored.provenance(runs[0]) for runs in by_engine.values()),
    )
