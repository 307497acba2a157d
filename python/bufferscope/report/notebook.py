"""Results as a notebook shows them: a table in HTML; charts are drawn on request."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from bufferscope.figures.choosing import chosen
from bufferscope.figures.source import points
from bufferscope.metrics import aggregate
from bufferscope.metrics.key_metrics import heading, key_metrics

if TYPE_CHECKING:
    from bufferscope.results.result import Result
    from bufferscope.store.run import BaseRun
    from bufferscope.studies.comparison import Comparison

MOST_ROWS = 50
"""The most points in a table; a note says how many are left out."""


def result_html(result: "Result") -> str:
    """One row per point with the most important metrics, over all repetitions."""
    from bufferscope.studies.agreement.fmt import estimate

    grouped = points(result)
    names = list(dict.fromkeys(name for point in grouped for name in key_metrics(point.first.scenario)))
    shown = [
        (point.label, aggregate([run.metrics for run in result.runs if run in point.runs]))
        for point in grouped[:MOST_ROWS]
    ]
    names = [name for name in names if any(name in found for _, found in shown)]
    rows = [
        [label or "the run", *(estimate(found[name]) if name in found else "" for name in names)]
        for label, found in shown
    ]
    more = len(grouped) - len(shown)
    notes = [f"{more} more points are not shown."] if more else []
    return _html(
        f"{result.experiment}: {result.document['title']}",
        ["Point", *map(heading, names)],
        rows,
        [*notes, _charts(chosen(result.runs))],
    )


def run_html(run: "BaseRun") -> str:
    """A run's settings, and every metric."""
    about = f"{run.engine}, seed {run.seed}" + "".join(f", {path} = {value}" for path, value in run.settings.items())
    rows = [[name, "censored" if math.isinf(value) else f"{value:.6g}"] for name, value in run.metrics.items()]
    return _html(f"{run.experiment}: {run.meta['title']}", ["Metric", "Value"], rows, [about])


def comparison_html(comparison: "Comparison") -> str:
    """One row per point, metric and arm, for the most important metrics."""
    from bufferscope.studies.comparison.fmt import metric_view, repetitions

    rows = [
        [point.title, metric, cell.arm, cell.value, cell.difference, cell.beyond]
        for point in comparison.points
        for metric in point.key_metrics
        for cell in metric_view(point, metric).cells
    ]
    headings = ["Point", "Metric", "Arm", "Mean", f"Difference to {comparison.baseline}", "Beyond chance?"]
    if not any(point.title for point in comparison.points):
        headings, rows = headings[1:], [row[1:] for row in rows]
    return _html(
        " and ".join(comparison.experiments),
        headings,
        rows,
        [repetitions(comparison), _charts(list(comparison.figures))],
    )


def _charts(names: Sequence[str]) -> str:
    return f"Charts: .figures[...] with {', '.join(names)}." if names else ""


def _html(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table with a caption, and notes below it; every text escaped."""
    head = Markup("").join(Markup("<th>{}</th>").format(text) for text in headings)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(text) for text in row))
        for row in rows
    )
    below = Markup("").join(Markup("<p>{}</p>").format(escape(note)) for note in notes if note)
    table = Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>")
    return str(table.format(title, head, body) + below)
