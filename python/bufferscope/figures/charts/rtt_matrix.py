"""Figure: the median round-trip time at each combination of swept values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.figures import style
from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import MatrixStyle, matrix, mean_metric
from bufferscope.figures.source import ResultRecords, probe_path

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

LOOK = MatrixStyle(
    title="Median round-trip time (ms)",
    subtitle="More orange: packets wait longer. Logarithmic colours.",
    quantity="median round-trip time (ms)",
    format=",.0f",
    scale={"type": "log", "range": style.WORSE, "interpolate": "rgb"},
    least_ratio=10,
)


@figure(needs=("probes",), shape="matrix")
def rtt_matrix(result: ResultRecords) -> LayerFigure:
    """One cell per point: the median round-trip time of its probes in ms, as the mean of its repetitions' medians."""
    probe_path(result.runs[0])
    return matrix(result, mean_metric("rtt.p50_ms"), LOOK)
