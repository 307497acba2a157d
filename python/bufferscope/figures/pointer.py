"""Interaction with a chart: showing values, and isolating series by the legend.

The page (`report/templates/page.js`) uses the names below to keep the time and the choice of series the same in all
charts of an experiment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, zooming
from bufferscope.figures.constant import constant
from bufferscope.figures.source import ResultRecords, duration_s

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure, Layer, LayerFigure

Choices: TypeAlias = "tuple[alt.Parameter, ...]"

HOVER = "hover"
"""Name of the layer with the dot under the pointer."""
CROSSHAIR = "crosshair"
"""Name of the layer with the vertical line at the pointer's time."""
NAMES = "names"
"""Name of the layer with the lines' names (`ends.py`)."""
NEAREST, POINTED = "nearest", "pointed_s"
"""Names of parameters: the sample under the pointer, and its time in seconds or null."""
CHOICES = ("isolated", "chosen")
"""Names of the parameters that hold the entries chosen in a legend: of the first, and of a second one."""
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
    return constant("Tooltip", alt.ExprRef(f"{{{', '.join(entries)}}}"))


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
            opacity=_chosen(nearest, 1, 0),
            tooltip=told(tips),
        )
        .add_params(nearest)
    )
    return dot


def isolating(*channels: Any) -> Choices:
    """The choices of series by clicks on the legends of these channels, such as colour and dash; none without legends.

    Each click adds or removes one entry; if none is chosen, all are shown. `clickable` gives the choices to the layers;
    `dimmed` makes layers follow them.
    """
    found = [
        (name, written["field"]) for name, written in zip(CHOICES, map(_with_legend, channels), strict=False) if written
    ]
    return tuple(alt.selection_point(name=name, fields=[field], bind="legend", toggle="true") for name, field in found)


def _with_legend(channel: Any) -> dict[str, Any] | None:
    """A channel as the specification has it; None if it has no legend."""
    if channel is alt.Undefined or channel is None:
        return None
    written = axes.written(channel)
    return None if "field" not in written or written.get("legend", True) is None else written


def clickable(layers: Sequence[Layer], *channels: Any) -> list[Layer]:
    """The layers with their legends' choices. The first layer of a legend owns its choice.

    Vega-Lite makes a legend clickable only if the first of the layers that share it owns the choice.
    """
    found = list(layers)
    for choice, channel in _owners(channels):
        name, field = channel._encoding_name, axes.written(channel)["field"]
        for index, layer in enumerate(found):
            own: Any = getattr(layer.encoding, name, alt.Undefined) if isinstance(layer, alt.Chart) else alt.Undefined
            if own is not alt.Undefined and axes.written(own).get("field") == field:
                found[index] = layer.add_params(choice)
                break
    return found


def _owners(channels: Sequence[Any]) -> list[tuple[alt.Parameter, Any]]:
    return list(zip(isolating(*channels), filter(_with_legend, channels), strict=True))


def dimmed(isolated: Choices, opacity: float = 1) -> Any:
    """The opacity of marks that are dimmed while other series are chosen."""
    if not isolated:
        return constant("Opacity", opacity)
    chosen: Any = isolated[0] if len(isolated) == 1 else isolated[0] & isolated[1]
    return _chosen(chosen, opacity, DIMMED * opacity)


def _chosen(choice: Any, opacity: float, otherwise: float) -> Any:
    """The opacity of what is chosen, and of everything else."""
    condition: Any = alt.condition(choice, alt.value(opacity), alt.value(otherwise))
    return constant("Opacity", **condition)


def dimmed_or_moved(isolated: Choices) -> Any:
    """Like `dimmed`, for marks at the end of the time axis: they are hidden while only a part of the time is shown."""
    moved = {"test": f"isValid({zooming.PERIOD})", "value": 0}
    return constant("Opacity", DIMMED, condition=[moved, {"param": isolated[0].name, "value": 1}])


def _room(result: ResultRecords) -> alt.Chart:
    """Invisible names for a chart without names, so that it leaves the same room beside its plot as other charts."""
    unseen = alt.Chart(pl.DataFrame({"name": axes.names(result)}), name=NAMES)
    unseen = unseen.mark_text(style=NAMES, align="left", dx=axes.GAP, clip=False, opacity=0, aria=False)
    room: alt.Chart = unseen.encode(x=constant("X", "width"), y=constant("Y", 0), text=alt.Text("name:N"))
    return room


def over_time(chart: Figure, result: ResultRecords) -> Figure:
    """Make a figure over time interactive: the page draws it wide, and its time axis follows those of the others.

    `zooming` says how the time axis is moved. Panels (`multiples`) stay as they are.
    """
    from bufferscope.figures.chart import PanelFigure

    if isinstance(chart, PanelFigure):
        return chart
    pointed = alt.param(name=POINTED, expr=f"{NEAREST}.time_s ? {NEAREST}.time_s[0] : null")
    line = (
        alt.Chart(pl.DataFrame({"lines": [1]}), name=CROSSHAIR)
        .mark_rule(style="crosshair", clip=True, opacity=alt.ExprRef(f"{POINTED} === null ? 0 : 0.8"), aria=False)
        .encode(x=alt.XDatum(alt.ExprRef(POINTED), type="quantitative", title=axes.TIME, scale=axes.time_scale(result)))
    )
    beside = axes.room_for_names(result)
    named = any(layer.name == NAMES for layer in chart.layer)
    room = [_room(result)] if beside and not named else []
    first, *others = chart.layer
    chart.layer = [first.add_params(pointed), *others, *room, zooming.layer(), line]
    chart.width -= beside
    chart.usermeta = {"over": "time", "wide": True, "end_s": duration_s(result)}
    moving: LayerFigure = chart.copy(deep=False)  # collects the parameters of the layers, which it copies
    return moving
