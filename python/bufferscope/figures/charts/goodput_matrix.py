"""Figure: the goodput of all traffic together at each combination of swept values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.figures import style
from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import MatrixStyle, matrix, mean_metric
from bufferscope.figures.source import ResultRecords

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

LOOK = MatrixStyle(
    title="Goodput of all traffic (Mbit/s)",
    subtitle="Bluer: more of the link is used.",
    quantity="goodput (Mbit/s)",
    format=".2f",
    scale={"range": style.BETTER, "interpolate": "rgb"},
    least_ratio=1,
)


@figure(needs=("flows",), shape="matrix")
def goodput_matrix(result: ResultRecords) -> LayerFigure:
    """One cell per point: the goodput of all its traffic together in Mbit/s, as the mean of its repetitions."""
    return matrix(result, mean_metric("goodput.total_mbit"), LOOK)
