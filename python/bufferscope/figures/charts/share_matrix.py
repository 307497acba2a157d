"""Figure: the first source's share of the goodput, at each combination of swept values with competing traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import MatrixStyle, matrix
from bufferscope.figures.source import NoDataError, PlottedPoint, ResultRecords
from bufferscope.metrics import NotMeasuredError, metric
from bufferscope.model.network import bulk_flows, traffic_named
from bufferscope.stats.estimate import Estimate, estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

LOOK = MatrixStyle(
    title="Share of the goodput (%)",
    subtitle="Blue: takes more than half; orange: less.",
    quantity="share of the goodput (%)",
    format=".0f",
    scale={"domain": [0, 50, 100], "range": "diverging", "interpolate": "rgb"},
)


@figure(needs=("flows",), shape="matrix", only_of="competing traffic")
def share_matrix(result: ResultRecords) -> LayerFigure:
    """One cell per point: the percentage of all goodput that its first TCP traffic gets, as the mean of repetitions.

    Points without competing traffic have no cell.
    """
    bulk = [entry["name"] for entry in traffic_named(result.runs[0].scenario, "tcp")]
    if len(bulk) < 2:
        raise NoDataError("share_matrix: needs two traffic entries of kind tcp")
    own, total = f"goodput.{bulk[0]}_mbit", "goodput.total_mbit"

    def share(point: PlottedPoint) -> Estimate | None:
        entries = traffic_named(point.first.scenario, "tcp")
        alone = bulk_flows(point.first.scenario) == entries[0]["flows"]
        if alone:
            return None
        try:
            parts = [(metric(run, own).number, metric(run, total).number) for run in point.runs]
        except NotMeasuredError:
            return None
        return estimate([100 * mine / both for mine, both in parts]) if all(both for _, both in parts) else None

    return matrix(result, share, replace(LOOK, title=f"Share of the goodput that goes to {bulk[0]} (%)"))
