"""The page's content: from results to what the template shows, every text ready to be read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from bufferscope.experiment import teaching_position
from bufferscope.figures.choosing import chosen
from bufferscope.figures.source import Point, points
from bufferscope.report import drawing, lead, metrics_table, parameters, plotting, reasons, tiles, topology, verdicts
from bufferscope.report import runs as stored
from bufferscope.report.anchors import anchors
from bufferscope.report.contents import Entry, contents
from bufferscope.report.prose import markdown
from bufferscope.report.words import plural

if TYPE_CHECKING:
    from bufferscope.result import Result


@dataclass(frozen=True)
class ExperimentView:
    """One section of the page."""

    name: str
    """Its anchor, which is the experiment's name unless another section has that."""
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
    verdicts: verdicts.Group | None
    """Its expectations; None where its file has none."""
    parameters: tuple[parameters.Table, ...]
    metrics: metrics_table.MetricsTable
    runs: tuple[stored.RunView, ...]
    points: tuple[str, ...]
    """The points' labels; none where nothing is swept or compared."""
    commands: tuple[str, ...]
    """How to make the runs again, one for each engine."""
    provenance: tuple[str, ...]
    """What made them, one for each engine."""


@dataclass(frozen=True)
class PageView:
    """The whole page."""

    title: str
    summary: str
    outcome: reasons.Outcome
    counts: tuple[verdicts.Count, ...]
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
        """Whether the page is about one experiment, so that its title is the experiment's."""
        return len(self.experiments) == 1


def page_view(results: Sequence["Result"], page: Path, step: Callable[[int, int], None] | None = None) -> PageView:
    """What the page at `page` shows of these results, in teaching order; writes the figures' pictures beside it.

    `step` is told, before each result, how many are drawn and how many there are.
    """
    results = sorted(results, key=lambda result: teaching_position(result.experiment))
    names = anchors(result.experiment for result in results)
    why = reasons.reason_anchors([each for result in results for each in result.expectations])
    numbers = count(1)

    def drawn(done: int, result: "Result", name: str) -> ExperimentView:
        if step:
            step(done, len(results))
        return _experiment(result, name, page, why, numbers)

    experiments = tuple(drawn(done, *each) for done, each in enumerate(zip(results, names, strict=True)))
    groups = tuple(view.verdicts for view in experiments if view.verdicts)
    outcome = reasons.outcome(groups)
    explained = reasons.reasons(groups, why)
    pair = lead.find(results)
    runs = sum(len(view.runs) for view in experiments)
    return PageView(
        title=_title(experiments),
        summary=f"{plural(len(experiments), 'experiment')}, {plural(runs, 'run')}",
        outcome=outcome,
        counts=verdicts.counts(each.verdict for result in results for each in result.expectations),
        lead=_lead(pair, results, experiments, page) if pair else None,
        tiles=tiles.tiles(results, names, pair, outcome),
        groups=groups,
        reasons=explained,
        experiments=experiments,
        meanings=metrics_table.meanings(view.metrics for view in experiments),
        contents=contents(experiments, has_verdicts=bool(groups), has_reasons=bool(explained)),
    )


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
    result: "Result", anchor: str, page: Path, why: Mapping[str, str], numbers: Iterator[int]
) -> ExperimentView:
    document = result.document
    grouped = points(result)
    labels = {run.id: point.label for point in grouped for run in point.runs}
    by_engine = result.by_engine
    title = document.get("title") or result.runs[0].meta["title"]
    drawn = [drawing.draw(result, name, page, anchor) for name in chosen(result.runs)]
    return ExperimentView(
        name=anchor,
        title=title,
        experiment=result.experiment,
        source=document.get("source") or "",
        description=markdown(document.get("description") or ""),
        notes=markdown(document.get("notes") or ""),
        overrides=tuple(result.overrides),
        warnings=stored.warnings(result.runs),
        topology=plotting.view(topology.network(grouped)),
        figures=tuple(figure for figure in drawn if isinstance(figure, drawing.FigureView)),
        missing=_missing(document, drawn),
        verdicts=verdicts.group(anchor, title, result.expectations, why, numbers) if result.expectations else None,
        parameters=tuple(parameters.tables(grouped)),
        metrics=metrics_table.table(grouped),
        runs=tuple(stored.view(labels[run.id], run, page) for run in result.runs),
        points=_labels(grouped),
        commands=tuple(stored.command(r) for variant in result.variants for r in variant.by_engine.values()),
        provenance=tuple(stored.provenance(runs[0]) for runs in by_engine.values()),
    )


def _missing(document: Mapping[str, object], drawn: Sequence[object]) -> tuple[drawing.Missing, ...]:
    """The figures that the file asks for and the records hold nothing for; nobody asked for the default ones."""
    if not document.get("figures"):
        return ()
    return tuple(figure for figure in drawn if isinstance(figure, drawing.Missing))


def _labels(grouped: Sequence[Point]) -> tuple[str, ...]:
    labels = tuple(point.label for point in grouped)
    return labels if any(labels) else ()
