"""Panels below one another that share a horizontal axis, as one figure."""

from collections.abc import Sequence

import altair as alt

from bufferscope.figures import style
from bufferscope.figures.parts import Layer, lines

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
) -> alt.ConcatChart:
    """One panel for each list of layers, with its height in pixels and its title ("" for none).

    `heading` is the title and the explanation of the whole figure.
    """
    drawn = [
        alt.layer(*layers).properties(
            width=style.WIDTH, height=height, **({"title": alt.TitleParams(title, fontSize=14)} if title else {})
        )
        for layers, height, title in zip(panels, heights, titles, strict=True)
    ]
    title = alt.TitleParams(heading[0], subtitle=lines(heading[1]))
    row = TITLE_AND_AXIS if any(titles) else BETWEEN + style.EXTENT
    chart = alt.concat(*drawn, columns=1, spacing={"row": row, "column": 0}, bounds="flush").properties(
        title=title,
        description=description,
        usermeta={"wide": True, "panels": {"beside": BESIDE, "between": 0, "columns": 1, "least": LEAST_WIDTH}},
    )
    configured: alt.ConcatChart = chart.configure(**style.config(style.LIGHT))
    return configured
