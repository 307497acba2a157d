"""Small multiples: a panel for each series where there are more of them than colours.

All panels have the same axes, so that they can be compared, and each has its series' name as its title.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from bufferscope.figures import axes, parts, pointer, zooming
from bufferscope.figures.chart import Figure, PanelFigure
from bufferscope.figures.panels import Layout, arranged
from bufferscope.figures.parts import PANEL_HEIGHT, Layer
from bufferscope.figures.source import NoDataError, ResultRecords, points

LAYOUT = Layout(columns=3, below=66, beside=72, between=16, least=150)
WIDTH = 900
"""Pixels of the whole figure."""
MOST = 64
"""The most panels that a reader can compare."""
TITLE = 34
"""The most characters of a panel's title."""


def framed(
    result: ResultRecords, layers: Sequence[Layer], title: str, subtitle: str, description: str
) -> Figure:
    """The layers as one figure; with more points than colours, as a panel for each point.

    In panels, layers for the pointer and names beside lines are left out, and layers of other points' rows.
    """
    labels = [point.label for point in points(result)]
    if len(labels) <= axes.COLOURS:
        return parts.framed(layers, title, subtitle, description)
    return panels(layers, labels, "point", (title, subtitle), description)


def panels(
    layers: Sequence[Layer], names: Sequence[str], field: str, heading: tuple[str, str], description: str
) -> PanelFigure:
    """A panel for each of the names in the column `field` of the layers' data."""
    if len(names) > MOST:
        raise NoDataError(
            f"{len(names)} panels are too many to compare; at most {MOST}. Figures of one mark per point show more: "
            "rtt_by_point, trade_offs, rtt_matrix"
        )
    width = (WIDTH - (LAYOUT.columns - 1) * LAYOUT.between) // LAYOUT.columns - LAYOUT.beside
    drawn = [_panel(layers, name, field, number).properties(width=width) for number, name in enumerate(names)]
    told = heading[0], parts.sentence(heading[1], "All panels have the same axes.")
    return arranged(drawn, LAYOUT, told, description, y="shared")


def _panel(layers: Sequence[Layer], name: str, field: str, number: int) -> alt.LayerChart:
    own = [layer for layer in (_of(layer, name, field, number) for layer in layers) if layer is not None]
    title = name if len(name) <= TITLE else f"{name[: TITLE - 1]}…"
    return alt.LayerChart(layer=own).properties(height=PANEL_HEIGHT, title=alt.TitleParams(title, fontSize=13))


def _of(layer: Any, name: str, field: str, number: int) -> alt.Chart | None:
    """A layer with the rows of one series; None if it has none, or only serves the lines of all series together."""
    kept_names = (pointer.CROSSHAIR, pointer.NAMES, zooming.DRAG)
    if layer.name is not alt.Undefined and layer.name in kept_names:
        return None
    rows: pl.DataFrame = layer.data
    if field in rows.columns:
        rows = rows.filter(pl.col(field) == name)
    if rows.is_empty():
        return None
    own: alt.Chart = layer.copy()
    own.data = rows
    if layer.name == pointer.HOVER:
        own.name, own.params = f"{pointer.HOVER}_{number}", alt.Undefined
        own.encoding.opacity = alt.value(0)
    return own
