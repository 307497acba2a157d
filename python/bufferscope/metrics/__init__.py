"""Metrics, the numbers computed from records: what each one means and how it is computed.

>>> from bufferscope import metrics
>>> metrics.compute(run)["rtt.mean_ms"]                                                     # doctest: +SKIP
>>> metrics.metric(run, "rtt.p30_ms").censored                                              # doctest: +SKIP
>>> metrics.describe()                                                                      # doctest: +SKIP

The modules that compute metrics are loaded when they are first used, so it is cheap to ask which metrics there are
(`naming`, `definitions`).
"""

from typing import TYPE_CHECKING

from bufferscope import lazy

if TYPE_CHECKING:
    from bufferscope.metrics.definitions import Definition, definition
    from bufferscope.metrics.measuring import (
        MetricError,
        Metrics,
        NotMeasuredError,
        UnknownMetricError,
        Value,
        all_of,
        compute,
        metric,
        not_measured,
        not_recorded,
        of_each,
        one_of_each,
    )
    from bufferscope.metrics.naming import names
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
    "Definition": "definitions",
    "Estimate": "statistics",
    "MetricError": "measuring",
    "Metrics": "measuring",
    "NotMeasuredError": "measuring",
    "UnknownMetricError": "measuring",
    "Value": "measuring",
    "aggregate": "tables",
    "all_of": "measuring",
    "compute": "measuring",
    "definition": "definitions",
    "describe": "tables",
    "frame": "tables",
    "metric": "measuring",
    "names": "naming",
    "not_measured": "measuring",
    "not_recorded": "measuring",
    "of_each": "measuring",
    "one_of_each": "measuring",
}
__getattr__ = lazy.names(__name__, _HOMES)
