"""Two engines' agreement as tables for people, on standard output."""

from rich.text import Text

from bufferscope.cli.terminal import console, plain_table
from bufferscope.studies.agreement.comparing import Agreement, PointAgreement
from bufferscope.studies.agreement.fmt import MetricComparisonView, counts, title, view
from bufferscope.studies.agreement.tolerances import TOLERANCES

STYLES = {"reproduced": "green", "not-reproduced": "bold red", "not-applicable": "dim"}


def print_agreement(agreement: Agreement) -> None:
    """One table per point, one row per metric, and how many differences are within their tolerance."""
    for point in agreement.points:
        _print_point(agreement, point)
    for tolerance in TOLERANCES:
        console().print(Text(f"Tolerance of {tolerance.metric}: {tolerance.words}", style="dim"))
    told = ", ".join(f"{count} {words}" for _, words, count in counts(agreement))
    console().print(
        Text(f"{agreement.engines[0]} against {agreement.engines[1]}: {told or 'no metric with a tolerance'}")
    )
    if any(c.within_spread is None and c.value.n == 1 for point in agreement.points for c in point.comparisons):
        console().print(Text("One repetition says nothing about chance; use --repeat 3 or more."))


def _print_point(agreement: Agreement, point: PointAgreement) -> None:
    shown = plain_table(f"{agreement.experiment}: {title(point)}")
    shown.add_column("Metric")
    for heading in (*agreement.engines, "Difference"):
        shown.add_column(heading, justify="right")
    shown.add_column("Within spread?")
    shown.add_column("Tolerance")
    for comparison in point.comparisons:
        shown.add_row(*_row(view(comparison)))
    console().print(shown)


def _row(comparison: MetricComparisonView) -> tuple[Text, ...]:
    return (
        Text(comparison.metric),
        Text(comparison.value),
        Text(comparison.reference),
        Text(comparison.difference),
        Text(comparison.spread, style="bold" if comparison.beyond else ""),
        Text(comparison.verdict, style=STYLES[comparison.kind]),
    )
