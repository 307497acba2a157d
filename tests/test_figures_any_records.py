"""Every figure accepts any records: without rows, with nulls only, with one row, and with numbers that are no numbers.

A figure then draws what there is, or raises `NoDataError`. Its chart is JSON, which has neither NaN nor infinity.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from handmade import IRTT, NETALYZR, PING, SCHEMAS, TCP, WEB, HandmadeResult, HandmadeRun, scenario, table
from hypothesis import given, settings
from hypothesis import strategies as st
from test_figures import trips, with_everything

from bufferscope import figures, observed
from bufferscope.figures import pictures

KEPT = ("t_ns", "sent_ns", "started_ns", "port", "layer", "flow", "probe", "traffic", "direction", "half", "method")
"""Columns that say what a row is about: without them it is no record."""
HUGE = 2**62
MARKED = {"first": 1, "second": 3}
"""Packets of the two seeds' queue: points that differ in their values."""


def _columns(frame: pl.DataFrame) -> list[str]:
    return [name for name, kind in frame.schema.items() if name not in KEPT and kind.is_numeric()]


def _filled(value: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def damage(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.lit(value).alias(name) for name in _columns(frame))

    return damage


def _some(value: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Only the first row has the value."""

    def damage(frame: pl.DataFrame) -> pl.DataFrame:
        is_first = pl.int_range(pl.len()) == 0
        return frame.with_columns(
            pl.when(is_first).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name in _columns(frame)
        )

    return damage


def _nulls(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit(None, frame.schema[name]).alias(name) for name in _columns(frame))


def _all_nulls(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.lit(None, kind).alias(name) for name, kind in frame.schema.items() if name not in ("t_ns", "sent_ns", "flow")
    )


DAMAGES: Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "whole": lambda frame: frame,
    "no rows": lambda frame: frame.clear(),
    "nulls": _nulls,
    "all nulls": _all_nulls,
    "one row": lambda frame: frame.head(1),
    "one row of nulls": lambda frame: _nulls(frame.head(1)),
    "zeros": _filled(0),
    "negative": _filled(-1),
    "huge": _filled(HUGE),
    "one huge": _some(HUGE),
    "NaN": _filled(float("nan")),
    "one NaN": _some(float("nan")),
    "infinite": _filled(float("inf")),
    "one infinite": _some(float("inf")),
    "minus infinity": _some(float("-inf")),
}


@dataclass
class DamagedRun(HandmadeRun):
    """A run of which some tables are damaged."""

    damages: dict[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name not in SCHEMAS:
            raise AttributeError(name)
        return DAMAGES[self.damages.get(name, "whole")](table(name, self._rows(name)))


ORIGINS = ("sim", "capture", "import")
EMPTY = {
    "capture": ("queues", "drops", "sojourns", "capacity", "transfers", "estimates"),
    "import": ("queues", "drops", "sojourns", "capacity", "transfers", "estimates", "round_trips", "retransmissions"),
}
"""The tables of which runs that other programs observed have no rows."""


def damaged(origin: str, damages: dict[str, str], seed: int = 1, label: str = "100p") -> DamagedRun:
    made = with_everything(label)
    rows = made.rows | {"retransmissions": [{"flow": "bulk/1", "t_ns": 0, "bytes": 1, "kind": "fast"}]}
    run = DamagedRun(made.scenario, rows, seed=seed, point={"link.bottleneck.queue.limit": label}, damages=damages)
    if origin != "sim":
        run.engine = origin
        run.summary = run.summary | {"observed": {"tool": "a tool", "version": "", "sources": [], "reported": {}}}
        run.rows |= dict.fromkeys(EMPTY[origin], [])
    run.rows["probes"] = [row | {"probe": "ping"} for row in run.rows["probes"]]
    return run


def drawn(result: HandmadeResult, name: str) -> dict[str, Any] | None:
    """The chart as it leaves Python, which every parser of JSON can read; None without data for the figure."""
    try:
        spec: dict[str, Any] = figures.draw(result, name).to_dict(validate=False)
    except figures.NoDataError as error:
        assert str(error)
        return None
    json.dumps(spec, allow_nan=False)
    return spec
