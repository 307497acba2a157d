"""The connections of a capture as series: a colour and a name for each of those with the most data.

The names are made by `bufferscope inspect`. A connection has the same colour in all figures of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes
from bufferscope.figures.source import ResultRecords, points

if TYPE_CHECKING:
    from altair.typing import Optional

FIELD = "connection"
OTHERS = "other connections"


def names(result: ResultRecords) -> Mapping[str, str]:
    """The names of connections by their flows; empty for anything but a single run with such names."""
    known = points(result)
    if len(known) > 1 or len(known[0].runs) > 1:
        return {}
    observed = known[0].first.meta["summary"].get("observed")
    return observed.get("connections", {}) if observed else {}


def named(result: ResultRecords, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame, which has a column `flow`, with a column `connection` if there are names."""
    known = names(result)
    return frame.with_columns(name(known).alias(FIELD)) if known else frame


def name(known: Mapping[str, str]) -> pl.Expr:
    """The name of each row's flow."""
    return pl.col("flow").replace_strict(list(known), list(known.values()), default=OTHERS, return_dtype=pl.String)


def color(result: ResultRecords, frame: pl.DataFrame, symbol: str = "stroke") -> Optional[alt.Color]:
    """Colour by connection in a frame of `named`, with those that it has in the legend; otherwise colour by point."""
    if FIELD not in frame.columns:
        return axes.dot_color(result) if symbol == "circle" else axes.point_color(result)
    return by_connection(result, frame[FIELD], symbol)


def by_connection(
    result: ResultRecords, series: pl.Series, symbol: str = "stroke", title: str | None = None
) -> alt.Color:
    """Colour by the connections in a column, in the order of their data, with a legend."""
    domain = [*names(result).values(), OTHERS]
    shown = [each for each in domain if each in series]
    legend = alt.Legend(values=shown, symbolType=symbol, symbolOpacity=1)
    return alt.Color(f"{series.name}:N", title=title, sort=None, scale=alt.Scale(domain=domain), legend=legend)


def tips(frame: pl.DataFrame) -> list[alt.Tooltip]:
    """The flow for a tooltip, with the connection's name if there is one."""
    return [*([alt.Tooltip(f"{FIELD}:N")] if FIELD in frame.columns else []), alt.Tooltip("flow:N")]
