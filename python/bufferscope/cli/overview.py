"""The first output of `run`: one row per point, and the findings that are plain to see."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from bufferscope.analysis.findings import told
from bufferscope.cli.tables import number, point_name
from bufferscope.cli.terminal import console, plain_table
from bufferscope.figures.source import MOST_POINTS, PlottedPoint, points
from bufferscope.metrics import aggregate
from bufferscope.metrics.key_metrics import heading, key_metrics
from bufferscope.results.result import Result
from bufferscope.store.run import Run
from bufferscope.studies.agreement.fmt import estimate

MOST_COLUMNS = 7
"""The most metrics side by side; further metrics go into another table below."""


def print_runs(result: Result) -> None:
    """The most important metrics of the traffic: one row per point, with means and 95 % intervals over repetitions."""
    everything = points(result)
    grouped = everything[:MOST_POINTS]
    shown = dict.fromkeys(name for run in result.runs for name in key_metrics(run.scenario))
    names = [name for name in shown if any(name in run.metrics for run in result.runs)]
    for start in range(0, max(1, len(names)), MOST_COLUMNS):
        title = f"{result.experiment}: {result.document['title']}" if start == 0 else ""
        console().print(_table(title, result, grouped, names[start : start + MOST_COLUMNS]))
    if more := len(everything) - len(grouped):
        console().print(Text(f"Points not shown: {more}. `bufferscope export` writes all points."))
    if any(len(point.runs) > 1 for point in grouped):
        console().print(Text("Means over the repetitions ± half the width of their 95 % confidence interval."))


def print_findings(result: Result) -> None:
    """The findings that are plain to see, if any."""
    for sentence in told(points(result)):
        console().print(Text(sentence))


def _table(title: str, result: Result, grouped: Sequence[PlottedPoint], names: Sequence[str]) -> Table:
    table = plain_table(title)
    several = len(result.by_engine) > 1
    repeated = any(len(point.runs) > 1 for point in grouped)
    table.add_column("Point", overflow="fold")
    for text in ["Engine"] * several:
        table.add_column(text)
    for text in ["Runs" if repeated else "Seed", *map(heading, names)]:
        table.add_column(text, justify="right")
    by_id = {id(run): run for run in result.runs}
    for point in grouped:
        runs = [by_id[id(run)] for run in point.runs]
        count = str(len(runs)) if repeated else str(runs[0].seed)
        table.add_row(Text(point_name(runs[0])), *[runs[0].engine] * several, count, *_values(runs, names))
    return table


def _values(runs: Sequence[Run], names: Sequence[str]) -> list[Text]:
    if len(runs) == 1:
        metrics = runs[0].metrics
        return [Text(number(metrics[name]) if name in metrics else "-") for name in names]
    found = aggregate([run.metrics for run in runs])
    return [Text(estimate(found[name]) if name in found else "-") for name in names]
