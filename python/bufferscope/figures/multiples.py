"""Small multiples: a panel for each series where there are more of them than colours.

All panels have the same axes, so that they can be compared, and each has its series' name as its title.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, pointer, zooming
from bufferscope.figures.panels import Layout, arranged
from bufferscope.figures.parts import PANEL_HEIGHT, Layer
from bufferscope.figures.source import NoDataError, ResultRecords, points

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure, PanelFigure

LAYOUT = Layout(columns=3, below=66, beside=60, between=16, least=150)
WIDTH = 900
"""Pixels of the whole figure."""
MOST = 64
"""The most panels that a reader can compare."""
TITLE = 34
"""The most characters of a panel's title."""


def framed(
    result: ResultRecords,
    layers: Sequence[Layer],
    heading: tuple[str, str],
    description: str,
) -> Figure:
    """The layers as one figure; with more points than colours, as a panel for each point.

    `heading` is the title and the explanation. In panels, layers for the pointer and names beside lines are left out.
    """
    labels = [point.label for point in points(result)]
    if len(labels) <= axes.COLOURS:
        return parts.framed(layers, *heading, description)
    return panels(layers, labels, "point", heading, description)


def panels(
    layers: Sequence[Layer],
    names: Sequence[str],
    field: str,
    heading: tuple[str, str],
    description: str,
) -> PanelFigure:
    """A panel for each of the names in the column `field` of the layers' data that has rows."""
    if len(names) > MOST:
        raise NoDataError(
            f"{len(names)} panels are too many to compare; at most {MOST}. Figures of one mark per point show more: "
            "rtt_by_point, trade_offs, rtt_matrix"
        )
    width = (WIDTH - (LAYOUT.columns - 1) * LAYOUT.between) // LAYOUT.columns - LAYOUT.beside
    rows: list[list[Layer]] = [
        [own for layer in layers for own in _of(layer, name, field, number)] for number, name in enumerate(names)
    ]
    found = [(name, own) for name, own in zip(names, rows, strict=True) if own]
    found[:1] = [(name, pointer.clickable(own, alt.Undefined, _dash(layers))) for name, own in found[:1]]
    drawn = [_panel(name, own).properties(width=width) for name, own in found]
    told = heading[0], parts.sentence(heading[1], _axes_note(layers))
    return arranged(drawn, LAYOUT, told, description, y="shared")


def _axes_note(layers: Sequence[Any]) -> str:
    """What the axes are, which the panels don't say: a title would be longer than a panel's axis."""
    written = [layer.to_dict(context={"datasets": {}})["encoding"] for layer in layers]
    titles = [next(code[axis]["title"] for code in written if code.get(axis, {}).get("title")) for axis in "yx"]
    return f"All panels have the same axes, upwards {titles[0]}, across {titles[1]}."


def _dash(layers: Sequence[Any]) -> Any:
    """The dash of the lines, which may have a legend."""
    dashes = [layer.encoding.strokeDash for layer in layers if layer.encoding is not alt.Undefined]
    return next((dash for dash in dashes if dash is not alt.Undefined), alt.Undefined)


def _panel(name: str, own: Sequence[Layer]) -> alt.LayerChart:
    title = name if len(name) <= TITLE else f"{name[: TITLE - 1]}…"
    return alt.LayerChart(layer=list(own)).properties(height=PANEL_HEIGHT, title=alt.TitleParams(title, fontSize=13))


def _of(layer: Any, name: str, field: str, number: int) -> Iterator[alt.Chart]:
    """A layer with the rows of one series; nothing if it has none, or only serves the lines of all series together."""
    if layer.name in (pointer.CROSSHAIR, pointer.NAMES, zooming.DRAG):
        return
    rows: pl.DataFrame = layer.data
    if field in rows.columns:
        rows = rows.filter(pl.col(field) == name)
    if rows.is_empty():
        return
    own: alt.Chart = layer.copy()
    for axis in ("x", "y"):
        channel = getattr(own.encoding, axis)
        if isinstance(channel, (alt.X, alt.Y)):
            setattr(own.encoding, axis, channel.title(None))
    own.data, own.params = rows, alt.Undefined
    if layer.name == pointer.HOVER:
        own.name, own.encoding.opacity = f"{pointer.HOVER}_{number}", alt.value(0)
    yield own
