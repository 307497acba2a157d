"""Figure: the mean round-trip time against a swept size, such as that of a ring or of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.figures.by_size import BySizeStyle, by_size
from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import mean_metric
from bufferscope.figures.source import ResultRecords, probe_path

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

LOOK = BySizeStyle(title="Mean round-trip time by size", quantity="mean round-trip time (ms)", format=".4g")


@figure(needs=("probes",), shape="by size")
def rtt_by_size(result: ResultRecords) -> LayerFigure:
    """The mean round-trip time of the answered probes at each size, with its standard error over the repetitions."""
    probe_path(result.runs[0])
    return by_size(result, mean_metric("rtt.mean_ms"), LOOK)
