"""Figure: the segments that TCP sent again against a swept size, such as that of a ring or of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.figures.by_size import BySizeStyle, by_size
from bufferscope.figures.declaring import figure
from bufferscope.figures.matrix import mean_metric
from bufferscope.figures.source import ResultRecords

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure

LOOK = BySizeStyle(title="Retransmissions by size", quantity="retransmissions (segments)", format=".6g")


@figure(needs=("flows",), shape="by size")
def retransmits_by_size(result: ResultRecords) -> LayerFigure:
    """The segments retransmitted by all connections at each size, with their standard error over the repetitions."""
    return by_size(result, mean_metric("retransmits.total"), LOOK)
