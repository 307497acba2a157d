"""The period that figures over time show: dragging chooses one, Shift and dragging moves it, Shift and the wheel zooms.

No period begins before 0 or ends after the run. A double click shows the whole run again.

Vega-Lite's own interaction with scales moves an axis beyond both ends of its data, and cannot zoom by dragging. So the
period is a parameter that is updated by events (`on`, which Vega-Lite hands to Vega), and the axis' domain reads it.
"""

from __future__ import annotations

from typing import Any

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures.constant import constant

PERIOD = "zoom_time_s"
"""Name of the parameter: the times in seconds at which the axis begins and ends, or null for the whole run."""
DRAG, HELD = "drag", "held"
"""Names of parameters: the pixels between which the pointer was dragged; what Shift and dragging holds on to. `DRAG` is
also the name of the layer that shows it."""
LEAST = 4
"""The least number of pixels of a drag: less is a click."""
_INSIDE = "inrange(x(), [0, width]) && inrange(y(), [0, height])"
_DOWN = {"source": "view", "type": "pointerdown"}
_UP = {"source": "window", "type": "pointerup"}
_BY_MOUSE = "event.pointerType !== 'touch' && !event.button"


def domain(end_s: float) -> list[alt.ExprRef]:
    """The domain of the time axis of a run of this length."""
    return [alt.ExprRef(f"{PERIOD} ? {PERIOD}[{index}] : {end:.10g}") for index, end in enumerate((0.0, end_s))]


def whole(encoding: dict[str, Any]) -> dict[str, Any]:
    """A layer's encoding with the whole run on its time axis, for charts without the parameters."""
    scale = encoding.get("x", {}).get("scale") or {}
    ends = scale.get("domain")
    if not isinstance(ends, list) or not any(isinstance(end, dict) for end in ends):
        return encoding
    domain = [float(end["expr"].rpartition(" : ")[2]) for end in ends]
    return encoding | {"x": encoding["x"] | {"scale": scale | {"domain": domain}}}


def parameters(end_s: float) -> list[dict[str, Any]]:
    """The parameters of an interactive figure of a run of this length.

    The order matters: when the pointer is released, the period reads the drag before that is reset.
    """
    return [{"name": PERIOD, "value": None, "on": _period(end_s)}, _drag(), _held()]


def layer() -> alt.Chart:
    """The shade between the ends of a drag."""
    low, high = (alt.ExprRef(f"{DRAG} ? {which}({DRAG}[0], {DRAG}[1]) : 0") for which in ("min", "max"))
    shade = alt.Chart(pl.DataFrame({"drags": [1]}), name=DRAG).mark_rect(
        style="drag", aria=False, opacity=alt.ExprRef(f"{DRAG} ? 0.18 : 0")
    )
    drawn: alt.Chart = shade.encode(
        x=constant("X", low),
        x2=constant("X2", high),
        y=constant("Y", 0),
        y2=constant("Y2", "height"),
        tooltip=constant("Tooltip", None),
    )
    return drawn


def _period(end_s: float) -> list[dict[str, Any]]:
    end = f"{end_s:.10g}"
    chosen = f"[invert('x', min({DRAG}[0], {DRAG}[1])), invert('x', max({DRAG}[0], {DRAG}[1]))]"
    span = f"({HELD}.period[1] - {HELD}.period[0])"
    start = f"clamp({HELD}.period[0] - (x() - {HELD}.x) / width * {span}, 0, {end} - {span})"
    factor = "pow(1.001, (event.deltaY || event.deltaX) * pow(16, event.deltaMode))"
    at = "invert('x', clamp(x(), 0, width))"
    zoomed = [f"{at} + (domain('x')[{index}] - {at}) * {factor}" for index in (0, 1)]
    wheel = {"source": "view", "type": "wheel", "consume": True, "filter": ["event.shiftKey"]}
    return [
        {"events": _UP, "update": f"{DRAG} && abs({DRAG}[1] - {DRAG}[0]) > {LEAST} ? {chosen} : {PERIOD}"},
        {"events": _moves(), "update": f"{HELD} ? [{start}, {start} + {span}] : {PERIOD}"},
        {
            "events": wheel,
            "update": f"{zoomed[0]} <= 0 && {zoomed[1]} >= {end} ? null"
            f" : [max(0, {zoomed[0]}), min({end}, {zoomed[1]})]",
        },
        {"events": {"source": "view", "type": "dblclick"}, "update": "null"},
    ]


def _drag() -> dict[str, Any]:
    begun = {**_DOWN, "filter": [_BY_MOUSE, "!event.shiftKey"]}
    return {
        "name": DRAG,
        "value": None,
        "on": [
            {"events": begun, "update": f"{_INSIDE} ? [x(), x()] : null"},
            {"events": _moves(), "update": f"{DRAG} ? [{DRAG}[0], clamp(x(), 0, width)] : null"},
            {"events": _UP, "update": "null"},
        ],
    }


def _held() -> dict[str, Any]:
    begun = {**_DOWN, "filter": [_BY_MOUSE, "event.shiftKey"]}
    return {
        "name": HELD,
        "value": None,
        "on": [
            {"events": begun, "update": f"{_INSIDE} && {PERIOD} ? {{x: x(), period: {PERIOD}}} : null"},
            {"events": _UP, "update": "null"},
        ],
    }


def _moves() -> dict[str, Any]:
    """Moves of the pointer while it is held down."""
    return {"source": "window", "type": "pointermove", "between": [_DOWN, _UP]}
