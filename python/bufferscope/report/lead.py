"""The page's first sentence and figure: the same link and traffic, once with tail drop and once with CoDel."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from bufferscope.base.fmt import NBSP, quantity
from bufferscope.figures.source import PlottedPoint, engine, points
from bufferscope.metrics import MetricError, metric
from bufferscope.model.directions import SIDES
from bufferscope.model.figure_names import FigureName
from bufferscope.model.network import ports
from bufferscope.model.scenario import Scenario
from bufferscope.report import drawing

if TYPE_CHECKING:
    from bufferscope.results.result import Result

TAIL_DROP = frozenset({"pfifo", "bfifo"})
"""The disciplines that the sentence calls so: not those with bands, or that drop at the head."""
QUEUE_MANAGER = "codel"
FIGURE: FigureName = "rtt"
EXAMPLE = "ucas-mitigate"
"""The experiment of README's first picture."""
MOST_LOST = 0.1
"""The largest share of lost pings: with more, those that were answered say too little of the delay."""


@dataclass(frozen=True)
class Pair:
    """Two points that differ only in their queues: tail drop in one, an AQM in the other."""

    result: "Result"
    tail_drop: PlottedPoint
    managed: PlottedPoint
    tail_drop_ms: float
    """The mean round trip with tail drop."""
    managed_ms: float
    lost: tuple[float, float]
    """The share of pings that were lost, with tail drop and with the AQM."""


@dataclass(frozen=True)
class LeadView:
    """The beginning of the page."""

    name: str
    """The figure's anchor."""
    tail_drop: str
    """The mean round trip with tail drop."""
    managed: str
    lost: str
    """The lost pings in words; empty if none was lost."""
    experiment: str
    """The experiment's title."""
    anchor: str
    """The anchor of the experiment's section."""
    figures: tuple[drawing.FigureView, ...]
    missing: tuple[drawing.MissingFigure, ...] = ()


def find(results: Sequence["Result"]) -> Pair | None:
    """The pair of README's example, or of the first result that has one: there, the one that waits longest.

    None if no result has a pair of which nearly all pings were answered.
    """
    for result in sorted(results, key=lambda result: result.experiment != EXAMPLE):
        if pairs := [pair for pair in _pairs(result) if max(pair.lost) <= MOST_LOST]:
            return max(pairs, key=lambda pair: pair.tail_drop_ms)
    return None


def view(pair: Pair, anchor: str, page: Path, *, draws: bool) -> LeadView:
    """The pair in words, and also as a figure unless the page shows the same figure right below."""
    figure = drawing.draw(_together(pair), FIGURE, page, "lead") if draws else None
    return LeadView(
        name="lead",
        tail_drop=rounded(pair.tail_drop_ms),
        managed=rounded(pair.managed_ms),
        lost=_lost(pair),
        experiment=pair.result.document["title"],
        anchor=anchor,
        figures=(figure,) if isinstance(figure, drawing.FigureView) else (),
    )


def _lost(pair: Pair) -> str:
    if not any(pair.lost):
        return ""
    before, after = (f"{100 * share:.2g}{NBSP}%" for share in pair.lost)
    return f"Not in the mean: the pings that were lost, {before} with tail drop and {after} with CoDel."


def rounded(ms: float) -> str:
    """A time with three digits, which a reader can remember: `1.76 s`."""
    return quantity(float(f"{ms:.3g}") * 1e6, "ns")


def mean_of(point: PlottedPoint, name: str) -> float | None:
    """A metric's mean over a point's repetitions; None if one of them doesn't have the metric."""
    try:
        return fmean(float(metric(run, name)) for run in point.runs)
    except MetricError:
        return None


def _together(pair: Pair) -> "Result":
    from bufferscope.results.result import Result

    wanted = {run.id for point in (pair.tail_drop, pair.managed) for run in point.runs}
    return Result([run for run in pair.result.runs if run.id in wanted])


def _pairs(result: "Result") -> Iterator[Pair]:
    alike: dict[str, list[PlottedPoint]] = {}
    for point in points(result):
        alike.setdefault(_but_for_queues(point), []).append(point)
    for group in alike.values():
        for first, second in permutations(group, 2):
            if _is_cured(first.first.scenario, second.first.scenario):
                before, after = (mean_of(point, "rtt.mean_ms") for point in (first, second))
                if before is not None and after is not None:
                    yield Pair(
                        result, first, second, before, after, (_unanswered_share(first), _unanswered_share(second))
                    )


def _unanswered_share(point: PlottedPoint) -> float:
    sent, lost = (mean_of(point, name) for name in ("rtt.sent", "rtt.lost"))
    return lost / sent if sent and lost is not None else 1.0


def _but_for_queues(point: PlottedPoint) -> str:
    """What the two points of a pair must have in common: the engine, and the scenario without its queues."""
    scenario = point.first.scenario
    links = [{**link, **{side: {**link[side], "queue": None} for side in SIDES}} for link in scenario["links"]]
    return json.dumps([engine(point.first), {**scenario, "links": links}], sort_keys=True)


def _is_cured(before: Scenario, after: Scenario) -> bool:
    """Whether all queues that differ have tail drop in `before` and the AQM in `after`."""
    others = ports(after)
    changed = [
        (port.queue["qdisc"], others[name].queue["qdisc"])
        for name, port in ports(before).items()
        if port.rate and port.queue != others[name].queue
    ]
    return bool(changed) and all(was in TAIL_DROP and now == QUEUE_MANAGER for was, now in changed)
