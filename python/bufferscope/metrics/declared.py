"""All metrics, from the files that declare them."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module

from bufferscope.metrics.declaring import Metric, Query

FILES = (
    "rtt",
    "round_trips",
    "goodput",
    "fairness",
    "loss",
    "voip",
    "game",
    "video",
    "queues",
    "wifi",
    "sojourns",
    "flows",
    "transfers",
    "buffers",
    "live",
)
"""The files of this directory with metrics, in the order in which tables show them."""


@cache
def queries() -> Sequence[Query]:
    """The queries, in the order of their metrics."""
    return tuple(_queries())


@cache
def definitions() -> Sequence[Metric]:
    """All metrics, in the order in which tables show them."""
    return tuple(metric for query in queries() for metric in query.metrics)


@cache
def columns(table: str) -> Sequence[str]:
    """The columns of a table from which metrics are computed; no others are read."""
    return tuple(dict.fromkeys(name for query in queries() for name in query.reads.get(table, ())))


def _queries() -> Iterator[Query]:
    for name in FILES:
        module = import_module(f"bufferscope.metrics.{name}")
        yield from (each for each in vars(module).values() if isinstance(each, Query))
