"""Figure: how fairly flows share, at each combination of swept values with several competing flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.figures import style
from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import MatrixStyle, matrix, mean_metric
from bufferscope.figures.source import PlottedPoint, ResultRecords
from bufferscope.model.network import bulk_flows
from bufferscope.stats.estimate import Estimate

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

LOOK = MatrixStyle(
    title="Fairness (Jain's index)",
    subtitle="Bluer: fairer. 1: all flows have the same goodput. 0.5 with two flows: one of them has it all.",
    quantity="Jain's index of goodput",
    format=".2f",
    scale={"domain": [0, 1], "range": style.BETTER, "interpolate": "rgb"},
)


@figure(needs=("flows",), shape="matrix", only_of="competing traffic")
def jain_matrix(result: ResultRecords) -> LayerFigure:
    """One cell per point with several bulk flows: Jain's index of their goodputs, as the mean of its repetitions."""
    mean = mean_metric("goodput.jain")

    def among_several(point: PlottedPoint) -> Estimate | None:
        return mean(point) if bulk_flows(point.first.scenario) > 1 else None

    return matrix(result, among_several, LOOK)
