"""A comparison as one self-contained page: what was changed, what effect it had, and all arms in the same charts."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.base.fmt import plural
from bufferscope.figures.choosing import chosen
from bufferscope.figures.source import points
from bufferscope.model.figure_names import FigureName
from bufferscope.report import drawing, parameters, printing, rendering
from bufferscope.report import runs as stored
from bufferscope.report.contents import ContentsEntry, of_points
from bufferscope.store.metadata import sources
from bufferscope.studies.comparison.arms import Arm, Pool
from bufferscope.studies.comparison.comparing import Comparison, PointComparison, pool
from bufferscope.studies.comparison.fmt import MetricView, measured, metric_view, repetitions, unmatched

if TYPE_CHECKING:
    from bufferscope.store.run import Run

PAGE = "index.html"
SUMMARY: tuple[FigureName, ...] = ("rtt_by_point", "goodput_delay")
"""Figures that show many points in one chart."""
WHOLE = ("rtt_matrix", "goodput_matrix", "share_matrix", "jain_matrix", *SUMMARY)
"""Figures of a whole sweep: they can't be drawn of a single point."""
BESIDE: FigureName = "rtt_cdf"
"""The delays of all repetitions together; drawn in addition to the figures that the experiments name."""
MOST_ORIGINS = 50
MOST_DRAWN = 12
"""Points that get charts of their own: each point adds about half a megabyte to the page."""


@dataclass(frozen=True)
class ComparedPointView:
    """One point with all its arms."""

    name: str
    """Its anchor on the page."""
    title: str
    figures: tuple[drawing.FigureView, ...]
    missing: tuple[drawing.MissingFigure, ...]
    key_metrics: tuple[MetricView, ...]
    others: tuple[MetricView, ...]


@dataclass(frozen=True)
class ComparisonPage:
    """The whole page."""

    title: str
    name: str
    summary: str
    baseline: str
    repetitions: str
    unmatched: tuple[str, ...]
    figures: tuple[drawing.FigureView, ...]
    """Figures of all points together; empty if there is only one point."""
    missing: tuple[drawing.MissingFigure, ...]
    points: tuple[ComparedPointView, ...]
    contents: tuple[ContentsEntry, ...]
    undrawn: int
    """How many points have no charts of their own."""
    warnings: tuple[stored.WarningView, ...]
    parameters: tuple[parameters.Table, ...]
    runs: stored.RunList
    commands: tuple[str, ...]
    provenance: tuple[str, ...]


def build(
    comparison: Comparison,
    path: str | PathLike[str],
    step: Callable[[int, int], None] | None = None,
    *,
    stills: bool = False,
) -> Path:
    """Write `index.html` to the directory `path`; returns the page's path.

    `step` is called before each point with the number of points drawn and the total number. If `stills`, each chart
    is also drawn as a picture, as for `report.build`.
    """
    page = Path(path) / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    with printing.beside(stills=stills):
        view = _view(comparison, page, step or (lambda _done, _total: None))
        page.write_text(rendering.render(view, "comparison.html.jinja"), encoding="utf-8")
    return page


def _view(comparison: Comparison, page: Path, step: Callable[[int, int], None]) -> ComparisonPage:
    def drawn(done: int, point: PointComparison) -> ComparedPointView:
        step(done, len(comparison.points))
        return _point(point, done + 1, page)

    everything = [arm for point in (*comparison.points, *comparison.unmatched) for arm in point.named_arms]
    together = pool(everything)
    compared = tuple(drawn(done, point) for done, point in enumerate(comparison.points))
    figures = [drawing.draw(together, name, page, "comparison") for name in SUMMARY] if len(everything) > 2 else []
    return ComparisonPage(
        title=_title(comparison),
        name="comparison",
        summary=", ".join(
            plural(count, word)
            for count, word in (
                (len(comparison.arms), "arm"),
                (len(comparison.points), "point"),
                (len(comparison.runs), "run"),
            )
        ),
        baseline=comparison.baseline,
        repetitions=" ".join(filter(None, (measured(comparison), repetitions(comparison)))),
        unmatched=tuple(unmatched(comparison)),
        figures=_drawn(figures),
        missing=(),
        points=compared,
        contents=of_points("What the change did", compared),
        undrawn=max(0, len(comparison.points) - MOST_DRAWN),
        warnings=stored.warnings(together.runs),
        parameters=_parameters(comparison, together),
        runs=stored.run_list(((arm.label, run) for arm in everything for run in arm.runs), page),
        commands=tuple(dict.fromkeys(_commands(everything))),
        provenance=tuple(dict.fromkeys(stored.provenance(run) for run in _of_each_origin(together))),
    )


def _title(comparison: Comparison) -> str:
    if len(comparison.arms) == 2:
        return f"{comparison.arms[0]} against {comparison.arms[1]}"
    return f"{plural(len(comparison.arms), 'arm')} against one another"


def _point(point: PointComparison, number: int, page: Path) -> ComparedPointView:
    name = f"point-{number}"
    together = pool(point.arms)
    wanted = dict.fromkeys([*chosen(together.runs), BESIDE]) if number <= MOST_DRAWN else {}
    drawn = [drawing.draw(together, figure, page, f"comparison-{number}") for figure in wanted if figure not in WHOLE]
    first = point.key_metrics
    return ComparedPointView(
        name=name,
        title=point.title or "In detail",
        figures=_drawn(drawn),
        missing=tuple(
            figure for figure in drawn if isinstance(figure, drawing.MissingFigure) and figure.name != BESIDE
        ),
        key_metrics=tuple(metric_view(point, metric) for metric in first),
        others=tuple(metric_view(point, metric) for metric in point.metrics if metric not in first),
    )


def _drawn(figures: list[drawing.FigureView | drawing.MissingFigure]) -> tuple[drawing.FigureView, ...]:
    return tuple(figure for figure in figures if isinstance(figure, drawing.FigureView))


def _parameters(comparison: Comparison, together: Pool) -> tuple[parameters.Table, ...]:
    """The parameters, with differing values side by side; none for several experiments, which have no common table."""
    return tuple(parameters.tables(points(together))) if len(comparison.experiments) == 1 else ()


def _commands(arms: list[Arm]) -> list[str]:
    """How to make the runs again: one command for each experiment file, engine and set of overrides."""
    variants = [variant for arm in arms for variant in Pool(arm.runs, [""] * len(arm.runs)).variants]
    return [stored.command(runs) for variant in variants for runs in variant.by_engine.values()]


def _of_each_origin(together: Pool) -> "list[Run]":
    """The first run of each engine; of runs that other programs observed, all, up to a number that a page can show."""
    found = []
    for runs in together.by_engine.values():
        found += runs[: MOST_ORIGINS if sources(runs[0].meta) else 1]
    return found
