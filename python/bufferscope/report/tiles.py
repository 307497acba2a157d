"""The page's number tiles: what a reader should remember, all computed from the runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bufferscope.base.fmt import NBSP, number, plural
from bufferscope.figures.source import NoDataError, PlottedPoint, points, probe_path
from bufferscope.model.network import probers
from bufferscope.report.lead import Pair, mean_of, rounded
from bufferscope.report.reasons import StatementCounts

if TYPE_CHECKING:
    from bufferscope.results.result import Result

MS = 1e6
NEAR_TIMEOUT = 0.95
"""Beside lost pings, a wait of this share of the time-out may be cut short by it."""


@dataclass(frozen=True)
class Tile:
    """A number and its meaning."""

    value: str
    label: str
    note: str = ""
    """Where the number comes from."""
    anchor: str = ""
    """The section of the page that shows it."""


@dataclass(frozen=True)
class _Delay:
    """The longest wait of an answered ping at a point, beyond its path's own delay."""

    ms: float
    path_ms: float
    result: "Result"
    point: PlottedPoint
    at_least: bool = False
    """Whether pings waited longer, and count as lost: the longest wait is then only that of the time-out."""


def tiles(
    results: Sequence["Result"], anchors: Sequence[str], pair: Pair | None, outcome: StatementCounts
) -> tuple[Tile, ...]:
    """The tiles for which these results have numbers; `anchors` are those of the results' sections."""
    anchor = dict(zip(map(id, results), anchors, strict=True))
    worst = max(
        (found for result in results for point in points(result) if (found := _delay(result, point))),
        key=lambda delay: delay.ms,
        default=None,
    )
    made = [_worst(worst, anchor[id(worst.result)], len(results) > 1)] if worst else []
    if pair:
        made += _cure(pair, anchor[id(pair.result)])
    if outcome.total:
        value = f"{number(outcome.reproduced)} of {number(outcome.total)}"
        made.append(Tile(value, "statements of the documents reproduced", anchor="verdicts"))
    made.append(_size(results))
    return tuple(made)


def _worst(worst: _Delay, anchor: str, names_experiment: bool) -> Tile:
    where = ", ".join(filter(None, [worst.result.experiment if names_experiment else "", worst.point.label]))
    path = f"beyond its path's own {rounded(worst.path_ms)}"
    if worst.at_least:
        label = f"a ping waited {path}; longer waits ended in a time-out"
        return Tile(f"at least{NBSP}{rounded(worst.ms)}", label, where, anchor)
    return Tile(rounded(worst.ms), f"the longest that a ping waited {path}", where, anchor)


def _cure(pair: Pair, anchor: str) -> list[Tile]:
    """The share of the delay, and of the goodput, that remains with the AQM."""
    made = []
    note = f"{pair.managed.label} against {pair.tail_drop.label}"
    before, after = _delay(pair.result, pair.tail_drop), _delay(pair.result, pair.managed)
    if before and after and before.ms > 0 and not (before.at_least or after.at_least):
        made.append(
            Tile(
                _percent(after.ms / before.ms),
                "of the longest wait remains with CoDel in place of tail drop",
                note,
                anchor,
            )
        )
    much, kept = (mean_of(point, "goodput.total_mbit") for point in (pair.tail_drop, pair.managed))
    if much and kept is not None:
        made.append(Tile(_percent(kept / much), "of the goodput is kept with CoDel", note, anchor))
    return made


def _size(results: Sequence["Result"]) -> Tile:
    runs = sum(len(result.runs) for result in results)
    label = "run" if runs == 1 else "runs"
    return Tile(number(runs), f"{label} of {plural(len(results), 'experiment')}" if len(results) > 1 else label)


def _delay(result: "Result", point: PlottedPoint) -> _Delay | None:
    """The longest wait at a point, over all its repetitions; None if no ping was answered."""
    try:
        there, back = probe_path(point.first)
    except NoDataError:
        return None
    if any(port.is_unknown for port in [*there, *back]):
        return None
    waited = [mean_of(PlottedPoint(point.label, (run,)), "rtt.max_ms") for run in point.runs]
    longest = max((wait for wait in waited if wait is not None), default=None)
    path_ms = sum(port.delay_ns for port in [*there, *back]) / MS
    if longest is None:
        return None
    timeouts_ms = [entry["timeout_ns"] / MS for entry in probers(point.first.scenario)]
    at_least = longest >= NEAR_TIMEOUT * min(timeouts_ms) and any(
        mean_of(PlottedPoint("", (run,)), "rtt.lost") for run in point.runs
    )
    return _Delay(longest - path_ms, path_ms, result, point, at_least)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}{NBSP}%" if share < 0.995 else f"{100 * share:.0f}{NBSP}%"
