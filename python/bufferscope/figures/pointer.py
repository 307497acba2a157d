"""Interaction with a chart: showing values, isolating series by the legend, and moving and zooming the time axis.

The page (`report/templates/page.js`) uses the names below to keep the time and the choice of series the same in all
charts of an experiment.
"""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from bufferscope.figures import axes
from bufferscope.figures.source import ResultRecords

HOVER = "hover"
"""Name of the layer with the dot under the pointer."""
CROSSHAIR = "crosshair"
"""Name of the layer with the vertical line at the pointer's time."""
NAMES = "names"
"""Name of the layer with the lines' names (`ends.py`)."""
NEAREST, POINTED, ISOLATED, ZOOM = "nearest", "pointed_s", "isolated", "zoom"
"""Names of parameters: the sample under the pointer, its time in seconds or null, the chosen series, the time shown."""
DIMMED = 0.08
"""Opacity of the other series while some series are chosen."""


def told(tips: Sequence[alt.Tooltip]) -> Any:
    """The tooltip of marks that are found by their distance from the pointer.

    Each such mark has a cell of a Voronoi diagram. The cell's datum is the mark, and the mark's datum is the row.
    Vega-Lite 6.4 would read the text from the mark ("undefined"), so this expression reads the row in both cases.
    """
    entries = []
    for tip in tips:
        written = axes.written(tip)
        field = written["field"]
        value = f"(datum.datum || datum)[{json.dumps(field)}]"
        if "format" in written:
            value = f"format({value}, {json.dumps(written['format'])})"
        entries.append(f"{json.dumps(written.get('title', field))}: {value}")
    return alt.value(alt.ExprRef(f"{{{', '.join(entries)}}}"))


def hover(
    frame: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    color: Any,
    result: ResultRecords,
    extra: Sequence[alt.Tooltip] = (),
) -> alt.Chart:
    """A dot at the sample nearest to the pointer that has a value; its tooltip shows the value."""
    tips = [*axes.point_tooltip(result), axes.tooltip(x), axes.tooltip(y), *extra]
    fields = [axes.written(tip)["field"] for tip in tips]
    nearest = alt.selection_point(
        name=NEAREST, fields=fields, nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    height = axes.written(y)["field"]
    dot: alt.Chart = (
        alt.Chart(frame, name=HOVER)
        .transform_filter(f"isValid(datum[{json.dumps(height)}])")
        .mark_point(size=70, clip=True, aria=False)
        .encode(
            x=x,
            y=y,
            color=color,
            opacity=alt.condition(nearest, alt.value(1), alt.value(0)),
            tooltip=told(tips),
        )
        .add_params(nearest)
    )
    return dot


def isolating(color: Any) -> alt.Parameter | None:
    """The choice of series by clicks on the legend of `color`; None without a colour or a legend.

    Each click adds or removes one series; if none is chosen, all are shown. One layer with the legend owns the
    parameter (`add_params`); the other layers refer to it by `dimmed`.
    """
    if not isinstance(color, alt.Color):
        return None
    written = axes.written(color)
    if written.get("legend", True) is None:
        return None
    return alt.selection_point(name=ISOLATED, fields=[written["field"]], bind="legend", toggle="true")


def dimmed(isolated: alt.Parameter | None, opacity: float = 1) -> Any:
    """The opacity of marks that are dimmed while other series are chosen."""
    if isolated is None:
        return alt.value(opacity)
    return alt.condition(isolated, alt.value(opacity), alt.value(DIMMED * opacity))


def dimmed_or_moved(isolated: alt.Parameter) -> Any:
    """Like `dimmed`, for marks at the end of the time axis: they are hidden while only a part of the time is shown."""
    moved = {"test": f"isValid({ZOOM}_time_s)", "value": 0}
    return alt.value(DIMMED) | {"condition": [moved, {"param": isolated.name, "value": 1}]}


def _room(result: ResultRecords) -> alt.Chart:
    """Invisible names for a chart without names, so that it leaves the same room beside its plot as other charts."""
    unseen = alt.Chart(pl.DataFrame({"name": axes.names(result)}), name=NAMES)
    unseen = unseen.mark_text(style=NAMES, align="left", dx=axes.GAP, clip=False, opacity=0, aria=False)
    room: alt.Chart = unseen.encode(x=alt.value("width"), y=alt.value(0), text="name:N")
    return room


def over_time(chart: alt.LayerChart, result: ResultRecords) -> alt.LayerChart:
    """Make a figure over time interactive: the page draws it wide, and moves its time axis with those of the others.

    Dragging moves the time axis, the wheel with Shift zooms it, and a double click shows the whole time again.
    """
    pointed = alt.param(name=POINTED, expr=f"{NEAREST}.time_s ? {NEAREST}.time_s[0] : null")
    zoom = alt.selection_interval(name=ZOOM, bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
    line = (
        alt.Chart(pl.DataFrame({"lines": [1]}), name=CROSSHAIR)
        .mark_rule(style="crosshair", clip=True, opacity=alt.ExprRef(f"{POINTED} === null ? 0 : 0.8"), aria=False)
        .encode(x=alt.XDatum(alt.ExprRef(POINTED), type="quantitative", title=axes.TIME, scale=axes.time_scale(result)))
    )
    beside = axes.room_for_names(result)
    named = any(layer.name == NAMES for layer in chart.layer)
    chart.layer = [*chart.layer, *([_room(result)] if beside and not named else []), line]
    chart.width -= beside
    moving: alt.LayerChart = chart.add_params(zoom, pointed).properties(usermeta={"over": "time", "wide": True})
    return moving
