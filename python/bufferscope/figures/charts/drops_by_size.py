"""Figure: the packets that the bottleneck dropped against a swept size, such as that of a ring or of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.figures.by_size import BySizeStyle, by_size
from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import mean_metric
from bufferscope.figures.source import ResultRecords, bottleneck

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure


@figure(needs=("drops", "queues", "capacity"), shape="by size")
def drops_by_size(result: ResultRecords) -> LayerFigure:
    """The packets dropped at the port where packets wait longest, with their standard error over the repetitions."""
    port = bottleneck(result).name
    look = BySizeStyle(title=f"Packets dropped at {port} by size", quantity="drops (packets)", format=".6g")
    return by_size(result, mean_metric(f"drops.{port}"), look)
