"""Metrics, the numbers computed from records: what each one means and how it is computed.

>>> from bufferscope import metrics
>>> metrics.compute(run)["rtt.mean_ms"]                                                     # doctest: +SKIP
>>> metrics.metric(run, "rtt.p30_ms").censored                                              # doctest: +SKIP
>>> metrics.describe()                                                                      # doctest: +SKIP

The modules that compute metrics are loaded when they are first used, so it is cheap to ask which metrics there are
(`naming`, `definitions`).
"""

from typing import TYPE_CHECKING

from bufferscope.base import lazy

if TYPE_CHECKING:
    from bufferscope.metrics.measuring import all_of, compute, metric, not_measured, not_recorded, of_each, one_of_each
    from bufferscope.metrics.tables import aggregate, describe, frame
    from bufferscope.model.metric_definitions import Definition, definition
    from bufferscope.model.metric_names import names
    from bufferscope.model.metric_values import MetricError, Metrics, NotMeasuredError, UnknownMetricError, Value
    from bufferscope.stats.estimate import Estimate

__all__ = [
    "Definition",
    "Estimate",
    "MetricError",
    "Metrics",
    "NotMeasuredError",
    "UnknownMetricError",
    "Value",
    "aggregate",
    "all_of",
    "compute",
    "definition",
    "describe",
    "frame",
    "metric",
    "names",
    "not_measured",
    "not_recorded",
    "of_each",
    "one_of_each",
]

_HOMES = {
    "Definition": "bufferscope.model.metric_definitions",
    "Estimate": "bufferscope.stats.estimate",
    "MetricError": "bufferscope.model.metric_values",
    "Metrics": "bufferscope.model.metric_values",
    "NotMeasuredError": "bufferscope.model.metric_values",
    "UnknownMetricError": "bufferscope.model.metric_values",
    "Value": "bufferscope.model.metric_values",
    "aggregate": "tables",
    "all_of": "measuring",
    "compute": "measuring",
    "definition": "bufferscope.model.metric_definitions",
    "describe": "tables",
    "frame": "tables",
    "metric": "measuring",
    "names": "bufferscope.model.metric_names",
    "not_measured": "measuring",
    "not_recorded": "measuring",
    "of_each": "measuring",
    "one_of_each": "measuring",
}
__getattr__ = lazy.names(__name__, _HOMES)
