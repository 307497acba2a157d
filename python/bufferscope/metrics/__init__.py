"""Numbers from records: what each metric means and how it is computed.

>>> from bufferscope import metrics
>>> metrics.compute(run)["rtt.mean_ms"]                                                     # doctest: +SKIP
>>> metrics.metric(run, "rtt.p30_ms").censored                                              # doctest: +SKIP
>>> metrics.describe()                                                                      # doctest: +SKIP
"""

from bufferscope.metrics.definitions import Definition, definition
from bufferscope.metrics.measuring import (
    MetricError,
    Metrics,
    NotMeasuredError,
    UnknownMetricError,
    Value,
    compute,
    metric,
    names,
)
from bufferscope.metrics.statistics import Estimate
from bufferscope.metrics.tables import aggregate, describe, frame

__all__ = [
    "Definition",
    "Estimate",
    "MetricError",
    "Metrics",
    "NotMeasuredError",
    "UnknownMetricError",
    "Value",
    "aggregate",
    "compute",
    "definition",
    "describe",
    "frame",
    "metric",
    "names",
]
