"""Charts as pictures, without the parts that only serve a pointer."""

from collections.abc import Mapping
from typing import Any

import vl_convert

from bufferscope.figures.pointer import CROSSHAIR, HOVER

CHARACTER, SYMBOL = 7.2, 40
"""Widths in pixels: of a letter in a legend, and of an entry's symbol with the gaps around it."""
FOR_THE_POINTER = (HOVER, CROSSHAIR)
"""The names with which those layers begin that pictures leave out."""


def still(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without hovering, zooming and descriptions of marks; its picture has a tenth of the size."""
    kept = {key: value for key, value in spec.items() if key != "params"}
    if "layer" in kept:
        kept["layer"] = _seen(kept["layer"])
    if "concat" in kept:
        kept["concat"] = [panel | {"layer": _seen(panel["layer"])} for panel in kept["concat"]]
    config = kept.get("config", {})
    kept["config"] = config | {"aria": False, "legend": config.get("legend", {}) | _columns(kept)}
    return kept


def _seen(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The layers that are not only there for the pointer."""
    return [_settled(layer) for layer in layers if not layer.get("name", "").startswith(FOR_THE_POINTER)]


def _settled(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer whose encodings don't depend on the choice of series, but are those with all series chosen."""
    encoding = {channel: _chosen(code) for channel, code in layer.get("encoding", {}).items()}
    return layer | {"encoding": encoding}


def _columns(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The layout of a legend that is too wide for one line (`page.js` does the same for interactive charts)."""
    colors = [layer.get("encoding", {}).get("color", {}) for layer in spec.get("layer", ())]
    color: Mapping[str, Any] = next((color for color in colors if color.get("legend")), {})
    widths = [CHARACTER * len(name) + SYMBOL for name in color.get("scale", {}).get("domain", ())]
    width = spec.get("width")
    if not isinstance(width, int) or sum(widths) + CHARACTER * len(color.get("title") or "") <= width:
        return {}
    columns = max(1, min(len(widths), int(width / max(widths))))
    return {"columns": columns, "titleOrient": "top", "layout": {"top": {"direction": "vertical"}}}


def _chosen(code: Any) -> Any:
    """A channel with the value of its condition; of several conditions the last, which depends on the choice."""
    if "condition" not in code:
        return code
    conditions = code["condition"]
    return {"value": (conditions[-1] if isinstance(conditions, list) else conditions)["value"]}


def svg(spec: Mapping[str, Any]) -> str:
    """A specification (`chart.to_dict()`) drawn as SVG."""
    return vl_convert.vegalite_to_svg(still(spec))
