"""The look of all figures: palettes, sizes, and the light and dark configuration of a chart.

A chart names no colours. It refers to the palette by position and to styles such as `limit` and `lost` by name, so the
same specification can be drawn with either configuration. The hues are those of Okabe and Ito ("Color universal
design", 2008), which can be distinguished with all common forms of colour blindness. They are made darker or lighter
until each has a contrast of at least 3:1 with its background (WCAG 2.2, 1.4.11).
"""

from dataclasses import dataclass
from typing import Any, Literal

WIDTH = 720
"""Width of a figure's plot in pixels; long series are thinned to fit it."""
HEIGHT = 260
EXTENT = 50
"""Width in pixels of a value axis with its labels; always the same, so that plots below one another are aligned."""
WORSE: Literal["ramp"] = "ramp"
BETTER: Literal["heatmap"] = "heatmap"
LOSS: Literal["ordinal"] = "ordinal"
"""The ranges of colour scales, under names that Vega has: a specification can't define its own names. `LOSS` has four
colours, from no loss to heavy loss: green, blue, pink, orange, close to those of Smokeping."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """The colours of a chart on one background."""

    background: str
    ink: str
    muted: str
    grid: str
    palette: tuple[str, ...]
    worse: tuple[str, ...]
    """Colours for cells with a number whose larger values are worse, from small to large values. The contrast with ink
    is at least 4.5:1."""
    better: tuple[str, ...]
    """The same for numbers whose larger values are better."""
    diverging: tuple[str, ...]
    """The same for numbers below (orange) and above (blue) a middle."""


LIGHT = Theme(
    background="#ffffff",
    ink="#1b1f24",
    muted="#57606a",
    grid="#e7e9ec",
    palette=("#095aa6", "#c25616", "#07a568", "#bf699c", "#9a7400", "#2f9bd8", "#5b6470", "#7b3f00"),
    worse=("#fdf4ee", "#f8c9a4", "#ee9a5e"),
    better=("#f1f6fc", "#a9cdf2", "#6ea9e6"),
    diverging=("#ee9a5e", "#f4f5f6", "#6ea9e6"),
)
DARK = Theme(
    background="#14171b",
    ink="#e8eaed",
    muted="#a3abb5",
    grid="#2b3037",
    palette=("#3b8cf5", "#f37d2d", "#41db98", "#db85c4", "#e8c13f", "#8fd0ff", "#aab2bd", "#d9a679"),
    worse=("#221f1d", "#603416", "#9a4a14"),
    better=("#1b232c", "#1c416c", "#205a9c"),
    diverging=("#9a4a14", "#22272d", "#205a9c"),
)


def config(theme: Theme) -> dict[str, Any]:
    """The Vega-Lite configuration for a theme."""
    text = {"labelColor": theme.muted, "titleColor": theme.ink, "labelFontSize": 13, "titleFontSize": 14}
    return {
        "background": theme.background,
        "font": FONT,
        "padding": 8,
        "mark": {"color": theme.palette[0]},
        "rule": {"color": theme.palette[0]},
        "range": {
            "category": list(theme.palette), "diverging": list(theme.diverging),
            WORSE: list(theme.worse), BETTER: list(theme.better),
            LOSS: [theme.palette[index] for index in (2, 0, 3, 1)],
        },
        "line": {"strokeWidth": 1.5, "strokeJoin": "round", "strokeCap": "round"},
        "point": {"filled": True, "opacity": 1, "size": 45},
        "style": {
            "limit": {"color": theme.muted, "strokeDash": [5, 4], "strokeWidth": 1.25, "opacity": 0.9},
            "capacity": {"color": theme.muted, "strokeDash": [5, 4], "strokeWidth": 1.5},
            "bound": {"strokeDash": [5, 4], "strokeWidth": 1.25},
            "claimed": {"strokeDash": [5, 4], "strokeWidth": 1.25, "opacity": 0.8},
            "smoke": {"color": theme.muted, "opacity": 0.28},
            "lost": {"strokeWidth": 1.5, "opacity": 0.9},
            "note": {"color": theme.muted, "fontSize": 13},
            "guide": {"color": theme.muted},
            "label": {"color": theme.ink, "fontSize": 12},
            "leader": {"color": theme.muted, "strokeWidth": 0.75, "opacity": 0.8},
            "median": {"color": theme.background, "opacity": 1},
            "predicted": {"color": theme.ink, "opacity": 1},
            "cell": {"stroke": theme.background, "strokeWidth": 2},
            "number": {"color": theme.ink, "fontSize": 13},
            "interval": {"color": theme.ink, "fontSize": 11},
            "names": {"fontSize": 13, "fontWeight": 600},
            "drag": {"color": theme.muted},
            "crosshair": {"color": theme.muted, "strokeWidth": 1},
        },
        "title": {
            "anchor": "start", "frame": "group", "color": theme.ink, "fontSize": 16, "fontWeight": 600, "offset": 12,
            "subtitleColor": theme.muted, "subtitleFontSize": 13, "subtitlePadding": 5,
        },
        "axis": text | {
            "titleFontWeight": "normal", "grid": True, "gridColor": theme.grid, "domainColor": theme.muted,
            "tickColor": theme.muted, "titlePadding": 8, "labelPadding": 5, "labelOverlap": True,
        },
        "axisX": {"tickCount": 10},
        "axisYQuantitative": {"minExtent": EXTENT, "maxExtent": EXTENT},
        "legend": text | {
            "orient": "top", "direction": "horizontal", "titleOrient": "left", "titleFontWeight": "normal",
            "labelColor": theme.ink, "titleColor": theme.muted, "symbolStrokeWidth": 2.5, "symbolSize": 110,
            "symbolFillColor": theme.muted, "symbolStrokeColor": theme.muted,
            "columnPadding": 14, "titlePadding": 12, "offset": 8, "titleLimit": 260, "labelLimit": 220,
        },
        "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": HEIGHT},
    }  # fmt: skip
