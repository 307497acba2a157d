"""Two engines side by side on one self-contained page: every comparison, and the series of both in the same charts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.base.fmt import plural
from bufferscope.figures.source import points
from bufferscope.model.figure_names import FigureName
from bufferscope.report import drawing, parameters, printing, rendering
from bufferscope.report import runs as stored
from bufferscope.report.anchors import anchors
from bufferscope.report.contents import ContentsEntry, of_points
from bufferscope.results.result import Result
from bufferscope.studies.agreement.comparing import Agreement, PointAgreement, compare
from bufferscope.studies.agreement.fmt import MetricComparisonView, counts, title, view

if TYPE_CHECKING:
    from bufferscope.store.run import Run

PAGE = "index.html"
FIGURES: tuple[FigureName, ...] = ("rtt", "queue_length", "cwnd", "rtt_cdf")
"""Over time, what a user, a queue and a sender see; and the delays of all repetitions together."""


@dataclass(frozen=True)
class AgreementPointView:
    """One point on both engines."""

    name: str
    """Its anchor on the page."""
    title: str
    figures: tuple[drawing.FigureView, ...]
    missing: tuple[drawing.MissingFigure, ...]
    judged: tuple[MetricComparisonView, ...]
    others: tuple[MetricComparisonView, ...]
    unshared: tuple[tuple[str, str], ...]
    """Engines, each with the metrics that only it has."""


@dataclass(frozen=True)
class AgreementView:
    """The whole page."""

    title: str
    name: str
    summary: str
    counts: tuple[tuple[str, str, int], ...]
    """For each verdict its CSS class, its words and how often it was given."""
    engines: tuple[str, str]
    repetitions: str
    points: tuple[AgreementPointView, ...]
    parameters: tuple[parameters.Table, ...]
    runs: stored.RunList
    warnings: tuple[stored.WarningView, ...]
    contents: tuple[ContentsEntry, ...]
    commands: tuple[str, ...]
    provenance: tuple[str, ...]
    overrides: tuple[str, ...]


def build(
    result: Result, path: str | PathLike[str], step: Callable[[int, int], None] | None = None, *, stills: bool = False
) -> Path:
    """Write `index.html` for a result of two engines to the directory `path`; returns the page's path.

    `step` is called before each point with the number of points drawn and the total number. If `stills`, each chart
    is also drawn as a picture, as for `report.build`.
    """
    agreement = compare(result)
    page = Path(path) / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    with printing.beside(stills=stills):
        view = _page_view(agreement, result, page, step or (lambda _done, _total: None))
        page.write_text(rendering.render(view, "agreement.html.jinja"), encoding="utf-8")
    return page


def _page_view(agreement: Agreement, result: Result, page: Path, step: Callable[[int, int], None]) -> AgreementView:
    def drawn(done: int, point: PointAgreement, name: str) -> AgreementPointView:
        step(done, len(agreement.points))
        return _point_view(point, name, page)

    judged, reference = agreement.engines
    first = [runs[0] for runs in result.by_engine.values()]
    labels = {run.id: point.label for point in points(result) for run in point.runs}
    names = anchors(_words(point) for point in agreement.points)
    views = tuple(drawn(done, *each) for done, each in enumerate(zip(agreement.points, names, strict=True)))
    return AgreementView(
        title=f"{judged} against {reference}: {result.document['title']}",
        name=result.experiment,
        summary=f"{plural(len(agreement.points), 'point')}, {plural(len(result.runs), 'run')}",
        counts=counts(agreement),
        engines=agreement.engines,
        repetitions=_repetitions(result),
        points=views,
        parameters=tuple(parameters.tables(points(Result(result.by_engine[reference])))),
        runs=stored.run_list(((labels[run.id], run) for run in result.runs), page),
        warnings=stored.warnings(result.runs),
        contents=of_points("Summary", views),
        commands=(stored.command(result.runs, "agree", ("--engine", "--reference")),),
        provenance=tuple(stored.provenance(run) for run in first),
        overrides=tuple(result.overrides),
    )


def _point_view(point: PointAgreement, name: str, page: Path) -> AgreementPointView:
    result = Result(point.runs)
    drawn = [drawing.draw(result, figure, page, name) for figure in FIGURES]
    return AgreementPointView(
        name=name,
        title=title(point),
        figures=tuple(figure for figure in drawn if isinstance(figure, drawing.FigureView)),
        missing=tuple(figure for figure in drawn if isinstance(figure, drawing.MissingFigure)),
        judged=tuple(view(comparison) for comparison in point.judged),
        others=tuple(view(comparison) for comparison in point.comparisons if not comparison.tolerance),
        unshared=tuple((engine, ", ".join(names)) for engine, names in point.unshared.items() if names),
    )


def _words(point: PointAgreement) -> str:
    """The name of a point's section in links and files."""
    run = point.runs[0]
    words = [run.experiment, str(run.position + 1), *run.point.values()]
    return "-".join(words if run.point else words[:1])


def _repetitions(result: Result) -> str:
    """How many repetitions the means and their spread come from, in words."""
    fewest = min(_repetitions_of(runs) for runs in result.by_engine.values())
    if fewest == 1:
        return "One repetition says nothing about chance; run with --repeat 3 or more."
    return f"Means of {fewest} repetitions."


def _repetitions_of(runs: Sequence["Run"]) -> int:
    """The fewest repetitions of any point."""
    positions = [run.position for run in runs]
    return min(positions.count(position) for position in positions)
