"""The page's content: turns results into the texts that the template shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from bufferscope.experiment import Document, teaching_position
from bufferscope.figures.choosing import chosen
from bufferscope.figures.source import Point, points
from bufferscope.metrics import of_each
from bufferscope.report import (
    drawing,
    explaining,
    lead,
    metrics_table,
    parameters,
    plotting,
    reasons,
    tiles,
    topology,
    verdicts,
)
from bufferscope.report import runs as stored
from bufferscope.report.anchors import anchors
from bufferscope.report.contents import Entry, contents
from bufferscope.report.opening import Opening
from bufferscope.report.prose import markdown
from bufferscope.report.words import plural

if TYPE_CHECKING:
    from bufferscope.expectations import Evaluated
    from bufferscope.result import Result


@dataclass(frozen=True)
class ExperimentView:
    """One section of the page."""

    name: str
    """The section's anchor: the experiment's name, unless another section has that name."""
    title: str
    experiment: str
    source: str
    description: Markup
    notes: Markup
    overrides: tuple[str, ...]
    warnings: tuple[stored.Warned, ...]
    topology: plotting.TopologyView
    figures: tuple[drawing.FigureView, ...]
    missing: tuple[drawing.Missing, ...]
    explained: explaining.ExplainedView
    """What the points show, in sentences."""
    verdicts: verdicts.Group | None
    """The experiment's expectations; None if its file has none."""
    parameters: tuple[parameters.Table, ...]
    metrics: metrics_table.MetricsTable
    runs: stored.RunList
    points: tuple[str, ...]
    """The points' labels; none if nothing is swept or compared."""
    commands: tuple[str, ...]
    """The commands that make the runs again, one for each engine."""
    provenance: tuple[str, ...]
    """What made the runs, one text for each engine."""


@dataclass(frozen=True)
class PageView:
    """The whole page."""

    title: str
    summary: str
    outcome: reasons.Outcome
    counts: tuple[verdicts.Count, ...]
    opening: Opening | None
    """The answer of a command with which the page begins."""
    lead: lead.LeadView | None
    tiles: tuple[tiles.Tile, ...]
    groups: tuple[verdicts.Group, ...]
    """The expectations of the experiments that have any."""
    reasons: tuple[reasons.Reason, ...]
    experiments: tuple[ExperimentView, ...]
    meanings: tuple[tuple[str, str, str], ...]
    """What the page's metrics mean: name, unit and meaning."""
    contents: tuple[Entry, ...]

    @property
    def is_single(self) -> bool:
        """Whether the page is about one experiment; then its title is the experiment's."""
        return len(self.experiments) == 1

    @property
    def has_intervals(self) -> bool:
        """Whether any verdict's measurement has a confidence interval."""
        return any(verdict.has_interval for group in self.groups for verdict in group.verdicts)


def page_view(
    results: Sequence["Result"],
    page: Path,
    step: Callable[[int, int], None] | None = None,
    elsewhere: Mapping[str, Sequence["Evaluated"]] | None = None,
    opening: Opening | None = None,
) -> PageView:
    """The content of the page at `page` for these results, in teaching order; writes the figures' pictures beside it.

    `step` is called before each figure and each run with the number that are done and the total number. `elsewhere` has
    further measurements of the experiments' expectations, which are shown beside those of the results. A page that
    begins with an `opening` has no other lead.
    """
    results = sorted(results, key=lambda result: teaching_position(result.experiment))
    names = anchors(result.experiment for result in results)
    drawn = _drawn(results, names, page, step or (lambda _done, _total: None))
    evaluated = [[*result.expectations, *(elsewhere or {}).get(result.experiment, ())] for result in results]
    why = reasons.reason_anchors([each for own in evaluated for each in own])
    numbers = count(1)
    experiments = tuple(
        _experiment(result, name, page, figures, own, why, numbers)
        for result, name, figures, own in zip(results, names, drawn, evaluated, strict=True)
    )
    groups = verdicts.by_document([view.verdicts for view in experiments if view.verdicts])
    outcome = reasons.outcome(groups)
    explained = reasons.reasons(groups, why)
    pair = lead.find(results)
    runs = sum(view.runs.number for view in experiments)
    return PageView(
        title=_title(experiments),
        summary=f"{plural(len(experiments), 'experiment')}, {plural(runs, 'run')}",
        outcome=outcome,
        counts=verdicts.counts(each.verdict for own in evaluated for each in own),
        opening=opening,
        lead=_lead(pair, results, experiments, page) if pair and not opening else None,
        tiles=() if opening else tiles.tiles(results, names, pair, outcome),
        groups=groups,
        reasons=explained,
        experiments=experiments,
        meanings=metrics_table.meanings(view.metrics for view in experiments),
        contents=contents(experiments, has_verdicts=bool(groups), has_reasons=bool(explained)),
    )


def _drawn(
    results: Sequence["Result"], names: Sequence[str], page: Path, step: Callable[[int, int], None]
) -> list[list[drawing.FigureView | drawing.Missing]]:
    """The figures of each result. A separate process draws their pictures while this computes the runs' metrics."""
    wanted = [chosen(result.runs) for result in results]
    total = sum(map(len, wanted)) + sum(len(result.runs) for result in results)
    done = count()
    drawn: list[list[drawing.FigureView | drawing.Missing]] = []
    for result, anchor, figures in zip(results, names, wanted, strict=True):
        drawn.append([])
        for name in figures:
            step(next(done), total)
            drawn[-1].append(drawing.draw(result, name, page, anchor))
        for _ in of_each(result.runs):
            step(next(done), total)
    return drawn


def _title(experiments: Sequence[ExperimentView]) -> str:
    if len(experiments) == 1:
        return experiments[0].title
    return "Bufferbloat: what the documents say, and what was measured"


def _lead(
    pair: lead.Pair, results: Sequence["Result"], experiments: Sequence[ExperimentView], page: Path
) -> lead.LeadView:
    section = next(view for view, result in zip(experiments, results, strict=True) if result is pair.result)
    shown_below = len(experiments) == 1 and any(figure.name == lead.FIGURE for figure in section.figures)
    return lead.view(pair, section.name, page, draws=not shown_below)


def _experiment(
    result: "Result",
    anchor: str,
    page: Path,
    drawn: Sequence[drawing.FigureView | drawing.Missing],
    evaluated: Sequence["Evaluated"],
    why: Mapping[str, str],
    numbers: Iterator[int],
) -> ExperimentView:
    document = result.document
    grouped = points(result)
    labels = {run.id: point.label for point in grouped for run in point.runs}
    by_engine = result.by_engine
    title = document["title"]
    figures = tuple(figure for figure in drawn if isinstance(figure, drawing.FigureView))
    return ExperimentView(
        name=anchor,
        title=title,
        experiment=result.experiment,
        source=document["source"] or "",
        description=markdown(document["description"] or ""),
        notes=markdown(document["notes"] or ""),
        overrides=tuple(result.overrides),
        warnings=stored.warnings(result.runs),
        topology=plotting.view(topology.network(grouped)),
        figures=figures,
        missing=_missing(document, drawn),
        explained=explaining.view(grouped, anchor, {each.name: each.title for each in figures}),
        verdicts=(
            verdicts.group(anchor, title, document["document"] or "", evaluated, why, numbers) if evaluated else None
        ),
        parameters=tuple(parameters.tables(grouped)),
        metrics=metrics_table.table(grouped),
        runs=stored.run_list(((labels[run.id], run) for run in result.runs), page),
        points=_labels(grouped),
        commands=tuple(stored.command(r) for variant in result.variants for r in variant.by_engine.values()),
        provenance=tuple(stored.provenance(runs[0]) for runs in by_engine.values()),
    )


def _missing(document: Document, drawn: Sequence[object]) -> tuple[drawing.Missing, ...]:
    """The figures that the file asks for and for which there is no data; missing default figures are left out."""
    if not document["figures"]:
        return ()
    return tuple(figure for figure in drawn if isinstance(figure, drawing.Missing))


def _labels(grouped: Sequence[Point]) -> tuple[str, ...]:
    labels = tuple(point.label for point in grouped)
    return labels if any(labels) else ()
