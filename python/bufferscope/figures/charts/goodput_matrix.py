"""Figure: the goodput of all traffic together at each combination of swept values."""

import altair as alt

from bufferscope.figures import style
from bufferscope.figures.chart import LayerFigure
from bufferscope.figures.matrix import MatrixStyle, matrix, mean_metric
from bufferscope.figures.source import ResultRecords

LOOK = MatrixStyle(
    title="Goodput of all traffic (Mbit/s)",
    subtitle="Bluer: more of the link is used.",
    quantity="goodput (Mbit/s)",
    format=".2f",
    scale=alt.Scale(range=style.BETTER, interpolate="rgb"),
    least_ratio=1,
)


def goodput_matrix(result: ResultRecords) -> LayerFigure:
    """One cell per point: the goodput of all its traffic together in Mbit/s, as the mean of its repetitions."""
    return matrix(result, mean_metric("goodput.total_mbit"), LOOK)
