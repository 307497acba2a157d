"""Metrics, the numbers computed from records: what each one means and how it is computed.

>>> from bufferscope import metrics
>>> metrics.compute(run)["rtt.mean_ms"]                                                     # doctest: +SKIP
>>> metrics.metric(run, "rtt.p30_ms").censored                                              # doctest: +SKIP
>>> metrics.describe()                                                                      # doctest: +SKIP

The modules that compute metrics are loaded when they are first used, so it is cheap to ask which metrics there are
(`naming`, `definitions`).
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
]

_HOMES = {
    "definitions": ("Definition", "definition"),
    "measuring": (
        *("MetricError", "Metrics", "NotMeasuredError", "UnknownMetricError", "Value"),
        *("all_of", "compute", "metric", "not_measured", "not_recorded"),
    ),
    "naming": ("names",),
    "statistics": ("Estimate",),
    "tables": ("aggregate", "describe", "frame"),
}


def __getattr__(name: str) -> object:
    for home, names_there in _HOMES.items():
        if name in names_there:
            value: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
