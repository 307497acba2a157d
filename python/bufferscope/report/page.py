"""The page's content: turns results into the texts that the template shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from bufferscope.analysis.opening import Opening
from bufferscope.base.fmt import plural
from bufferscope.figures.choosing import chosen
from bufferscope.figures.source import PlottedPoint, points
from bufferscope.metrics import of_each
from bufferscope.model.experiment import ExperimentDocument, teaching_position
from bufferscope.report import (
    drawing,
    explaining,
    explorer,
    lead,
    metrics_table,
    parameters,
    plotting,
    reasons,
    tiles,
    topology,
    verdicts,
)
from bufferscope.report import live as measured
from bufferscope.report import runs as stored
from bufferscope.report.anchors import anchors
from bufferscope.report.contents import ContentsEntry, contents
from bufferscope.report.prose import markdown

if TYPE_CHECKING:
    from bufferscope.results.result import Result
    from bufferscope.results.verdicts import ExpectationResult


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
    brief: str
    """What part of the experiment was run; empty if all of it was."""
    warnings: tuple[stored.WarningView, ...]
    live: measured.LiveView | None
    """What a live measurement found; None for other runs, and for several."""
    topology: plotting.TopologyView
    figures: tuple[drawing.FigureView, ...]
    missing: tuple[drawing.MissingFigure, ...]
    explained: explaining.ExplainedView
    """What the points show, in sentences."""
    verdicts: verdicts.Group | None
    """The experiment's expectations; None if its file has none."""
    parameters: tuple[parameters.Table, ...]
    metrics: metrics_table.MetricsTable
    runs: stored.RunList
    points: tuple[str, ...]
    """The points' labels; none if nothing is swept or compared."""
    explorer: str
    """The address of the explorer beside the page that opens the experiment; empty if it can't."""
    commands: tuple[str, ...]
    """The commands that make the runs again, one for each engine."""
    provenance: tuple[str, ...]
    """What made the runs, one text for each engine."""


@dataclass(frozen=True)
class PageView:
    """The whole page."""

    title: str
    summary: str
    outcome: reasons.StatementCounts
    counts: tuple[verdicts.Count, ...]
    opening: Opening | None
    """The answer of a command with which the page begins."""
    lead: lead.LeadView | None
    tiles: tuple[tiles.Tile, ...]
    groups: tuple[verdicts.Group, ...]
    """The expectations of the experiments that have any."""
    reasons: Mapping[str, tuple[reasons.Reason, ...]]
    """Why measurements differ, by the experiments' anchors."""
    experiments: tuple[ExperimentView, ...]
    meanings: tuple[tuple[str, str, str], ...]
    """What the page's metrics mean: name, unit and meaning."""
    contents: tuple[ContentsEntry, ...]

    @property
    def is_single(self) -> bool:
        """Whether the page is about one experiment; then its title is the experiment's."""
        return len(self.experiments) == 1

    @cached_property
    def meaning_positions(self) -> Mapping[str, int]:
        """The position of each meaning among `meanings`."""
        return {meaning: position for position, (_, _, meaning) in enumerate(self.meanings)}

    @property
    def has_intervals(self) -> bool:
        """Whether any verdict's measurement has a confidence interval."""
        return any(verdict.has_interval for group in self.groups for verdict in group.verdicts)


RUN, FIGURE, EXPLAINED = 1, 20, 8
"""How long the metrics of a run, a figure and the explanation of a point take, in relation to each other."""
UNIT_S = 0.012
"""How long a unit of that takes on a processor."""


def expected_s(runs: int, figures: int, points: Sequence[int]) -> float:
    """How long a page takes, in seconds: of so many runs and figures, and of experiments with so many points."""
    most = explaining.MOST_POINTS if len(points) == 1 else explaining.MOST_OF_MANY
    return UNIT_S * (RUN * runs + FIGURE * figures + EXPLAINED * sum(min(most, each) for each in points))


class _Progress:
    """Reports how much of the page is done."""

    def __init__(self, results: Sequence["Result"], step: Callable[[int, int], None] | None) -> None:
        self.is_alone = len(results) == 1
        self.explained = explaining.MOST_POINTS if self.is_alone else explaining.MOST_OF_MANY
        """The most points of an experiment that are explained."""
        self._step = step or (lambda _done, _total: None)
        self._done = 0
        self._total = sum(
            RUN * len(result.runs)
            + FIGURE * len(chosen(result.runs))
            + EXPLAINED * min(self.explained, len(points(result)))
            for result in results
        )

    def advance(self, by: int) -> None:
        """Report what is done before a part of this size."""
        self._step(self._done, self._total)
        self._done += by


def page_view(
    results: Sequence["Result"],
    page: Path,
    step: Callable[[int, int], None] | None = None,
    elsewhere: Mapping[str, Sequence["ExpectationResult"]] | None = None,
    opening: Opening | None = None,
    brief: Mapping[str, str] | None = None,
) -> PageView:
    """The content of the page at `page` for these results, in teaching order; writes the figures' pictures beside it.

    The other arguments are those of `report.build`. A page that begins with an `opening` has no other lead.
    """
    results = _in_order(results)
    names = anchors(result.experiment for result in results)
    progress = _Progress(results, step)
    drawn = _drawn(results, names, page, progress)
    evaluated = [[*result.expectations, *(elsewhere or {}).get(result.experiment, ())] for result in results]
    numbers, reason_numbers = count(1), count(1)
    why = [reasons.reason_anchors(own, reason_numbers) for own in evaluated]
    experiments = tuple(
        _experiment(
            result,
            name,
            page,
            figures,
            own,
            texts,
            numbers,
            (brief or {}).get(result.experiment, ""),
            progress,
        )
        for result, name, figures, own, texts in zip(results, names, drawn, evaluated, why, strict=True)
    )
    groups = verdicts.by_document([view.verdicts for view in experiments if view.verdicts])
    outcome = reasons.outcome(groups)
    texts_of = dict(zip(names, why, strict=True))
    explained = {each.name: reasons.reasons(each, texts_of[each.name], reason_numbers) for each in groups}
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
        contents=contents(experiments, [_document(result) for result in results], has_verdicts=bool(groups)),
    )


def _drawn(
    results: Sequence["Result"], names: Sequence[str], page: Path, progress: "_Progress"
) -> list[list[drawing.FigureView | drawing.MissingFigure]]:
    """The figures of each result. A separate process draws their pictures while this computes the runs' metrics."""
    wanted = [chosen(result.runs) for result in results]
    drawn: list[list[drawing.FigureView | drawing.MissingFigure]] = []
    for result, anchor, figures in zip(results, names, wanted, strict=True):
        drawn.append([])
        for _ in of_each(result.runs):  # first, because figures use them, too
            progress.advance(RUN)
        for name in figures:
            progress.advance(FIGURE)
            drawn[-1].append(drawing.draw(result, name, page, anchor))
    return drawn


def _in_order(results: Sequence["Result"]) -> list["Result"]:
    """In teaching order, but for the experiments of a document, which are together with the first of them."""
    ordered = sorted(results, key=lambda result: teaching_position(result.experiment))
    documents = [_document(result) for result in ordered]
    position = {
        id(result): documents.index(name) if name else at
        for at, (result, name) in enumerate(zip(ordered, documents, strict=True))
    }
    return sorted(ordered, key=lambda result: position[id(result)])


def _document(result: "Result") -> str:
    return result.document["document"] or ""


def _title(experiments: Sequence[ExperimentView]) -> str:
    """What was run; with `--set`, also what was changed."""
    if len(experiments) == 1:
        (alone,) = experiments
        changed = " and ".join(alone.overrides)
        return f"{alone.title}, with {changed}" if changed else alone.title
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
    drawn: Sequence[drawing.FigureView | drawing.MissingFigure],
    evaluated: Sequence["ExpectationResult"],
    why: Mapping[str, str],
    numbers: Iterator[int],
    brief: str,
    progress: "_Progress",
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
        brief=brief,
        warnings=stored.warnings(result.runs),
        live=measured.view(result.runs[0]) if len(result.runs) == 1 else None,
        topology=plotting.view(topology.network(grouped)),
        figures=figures,
        missing=_missing(document, drawn),
        explained=explaining.view(
            grouped,
            anchor,
            {each.name: each.title for each in figures},
            progress.explained,
            lambda: progress.advance(EXPLAINED),
        ),
        verdicts=(
            verdicts.group(anchor, title, document["document"] or "", evaluated, why, numbers) if evaluated else None
        ),
        parameters=tuple(parameters.tables(grouped)),
        metrics=metrics_table.table(grouped),
        runs=stored.run_list(
            ((labels[run.id], run) for run in result.runs),
            page,
            stored.MOST_RUNS if progress.is_alone else stored.MOST_OF_MANY,
        ),
        points=_labels(grouped),
        explorer=explorer.beside(result.runs[0]),
        commands=tuple(stored.command(r) for variant in result.variants for r in variant.by_engine.values()),
        provenance=tuple(stored.provenance(runs[0]) for runs in by_engine.values()),
    )


def _missing(document: ExperimentDocument, drawn: Sequence[object]) -> tuple[drawing.MissingFigure, ...]:
    """The figures that the file asks for and for which there is no data; missing default figures are left out."""
    if not document["figures"]:
        return ()
    return tuple(figure for figure in drawn if isinstance(figure, drawing.MissingFigure))


def _labels(grouped: Sequence[PlottedPoint]) -> tuple[str, ...]:
    labels = tuple(point.label for point in grouped)
    return labels if any(labels) else ()
