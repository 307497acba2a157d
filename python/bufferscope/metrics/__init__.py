"""Numbers from records: what each metric means and how it is computed.

>>> from bufferscope import metrics
>>> metrics.compute(run)["rtt.mean_ms"]                                                     # doctest: +SKIP
>>> metrics.metric(run, "rtt.p30_ms").censored                                              # doctest: +SKIP
>>> metrics.describe()                                                                      # doctest: +SKIP
"""

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
    "Estimate",
    "MetricError",
    "Metrics",
    "NotMeasuredError",
    "UnknownMetricError",
    "Value",
    "aggregate",
    "compute",
    "describe",
    "frame",
    "metric",
    "names",
]
