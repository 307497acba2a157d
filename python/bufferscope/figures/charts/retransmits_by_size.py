"""Figure: the segments that TCP sent again against a swept size, such as that of a ring or of a queue."""

from bufferscope.figures.by_size import BySizeStyle, by_size
from bufferscope.figures.chart import LayerFigure
from bufferscope.figures.matrix import mean_metric
from bufferscope.figures.source import ResultRecords

LOOK = BySizeStyle(title="Retransmissions by size", quantity="retransmissions (segments)", format=".6g")


def retransmits_by_size(result: ResultRecords) -> LayerFigure:
    """The segments retransmitted by all connections at each size, with their standard error over the repetitions."""
    return by_size(result, mean_metric("retransmits.total"), LOOK)
