"""Panels below one another that share a horizontal axis, as one figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.figures import pointer, style
from bufferscope.figures.panels import Layout, arranged

if TYPE_CHECKING:
    from bufferscope.figures.chart import Layer, PanelFigure

BESIDE = 92
"""Pixels beside a panel: its vertical axis with its title, and room for the last number of the horizontal one."""
BETWEEN, TITLE_AND_AXIS = 22, 96
"""Pixels between a panel's axis and the next panel without a title, and between two plots if the lower has a title."""
LEAST_WIDTH = 150
"""The least width of a panel in which its names are shown, in pixels."""


def stacked(
    panels: Sequence[Sequence[Layer]],
    heights: Sequence[int],
    titles: Sequence[str],
    heading: tuple[str, str],
    description: str,
    legend: object = None,
) -> PanelFigure:
    """One panel for each list of layers, with its height in pixels and its title ("" for none).

    `heading` is the title and the explanation of the whole figure; `legend` is the channel with its legend.
    """
    clickable = [pointer.clickable(panels[0], alt.Undefined if legend is None else legend), *panels[1:]]
    drawn = [
        alt.LayerChart(layer=list(layers)).properties(
            width=style.WIDTH, height=height, **({"title": alt.TitleParams(title, fontSize=14)} if title else {})
        )
        for layers, height, title in zip(clickable, heights, titles, strict=True)
    ]
    below = TITLE_AND_AXIS if any(titles) else BETWEEN + style.EXTENT
    layout = Layout(columns=1, below=below, beside=BESIDE, between=0, least=LEAST_WIDTH)
    return arranged(drawn, layout, heading, description)
