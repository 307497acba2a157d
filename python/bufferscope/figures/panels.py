"""Plots beside and below one another, as one figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bufferscope.base.libraries import altair as alt
from bufferscope.figures import parts, style

if TYPE_CHECKING:
    from bufferscope.figures.chart import PanelFigure


@dataclass(frozen=True)
class Layout:
    """How plots are arranged, in pixels; the page follows it in its own width (`page.js`)."""

    columns: int
    below: int
    """Between a plot and the next one below it: axis, title."""
    beside: int
    """Beside a plot: its vertical axis."""
    between: int
    """Between two panels with their axes."""
    least: int
    """The least width of a plot in which its labels are shown."""
    bounds: str = "flush"


def arranged(
    drawn: Sequence[alt.LayerChart],
    layout: Layout,
    heading: tuple[str, str],
    description: str,
    **resolved: Literal["shared"],
) -> PanelFigure:
    """The plots as one figure with a title, an explanation and a description.

    `resolved` names channels whose scales all plots share.
    """
    spacing = {"row": layout.below, "column": layout.beside + layout.between if layout.columns > 1 else 0}
    usual: Any = {"concat": list(drawn), "columns": layout.columns, "spacing": spacing, "bounds": layout.bounds}
    from bufferscope.figures.chart import PanelFigure

    chart = PanelFigure(**usual).properties(
        title=parts.heading(*heading),
        description=description,
        usermeta={
            "wide": True,
            "panels": {
                "beside": layout.beside,
                "between": layout.between,
                "columns": layout.columns,
                "least": layout.least,
            },
        },
    )
    if resolved:
        chart = chart.resolve_scale(**resolved)
    configured: PanelFigure = chart.configure(**style.config(style.LIGHT))
    return configured
