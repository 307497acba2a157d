"""A comparison as tables for people, on standard output."""

from rich.text import Text

from bufferscope.cli.terminal import console, plain_table
from bufferscope.studies.comparison import Comparison, PointComparison
from bufferscope.studies.comparison.fmt import measured, metric_view, repetitions, unmatched


def print_comparison(comparison: Comparison) -> None:
    """One table per point: the most important metrics, one row per arm."""
    for point in comparison.points:
        _print_point(comparison, point)
    for words in unmatched(comparison):
        console().print(Text(f"Not compared, {words}"))
    if times := measured(comparison):
        console().print(Text(times))
    console().print(Text(repetitions(comparison)))
    for warning in dict.fromkeys(warning for run in comparison.runs for warning in run.warnings):
        console().print(Text(f"Warning: {warning}"))


def _print_point(comparison: Comparison, point: PointComparison) -> None:
    title = ", ".join(part for part in (" and ".join(comparison.experiments), point.title) if part)
    table = plain_table(title)
    for heading, justify in (("Metric", "left"), ("Arm", "left"), ("Mean", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # one of rich's words
    table.add_column(f"Difference to {comparison.baseline}", justify="right")
    table.add_column("Beyond chance?")
    for metric in point.key_metrics:
        for number, cell in enumerate(metric_view(point, metric).cells):
            name = metric if number == 0 else ""
            beyond = Text(cell.beyond, style="bold" if cell.stands_out else "")
            table.add_row(Text(name), Text(cell.arm), Text(cell.value), Text(cell.difference), beyond)
    console().print(table)
