"""Charts as pictures: SVG and PNG without what only serves a pointer."""

from collections.abc import Mapping
from typing import Any

import vl_convert

from bufferscope.figures.pointer import CROSSHAIR, HOVER

PNG_SCALE = 2
FOR_THE_POINTER = (HOVER, CROSSHAIR)
"""The layers that a picture is drawn without."""


def still(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without hovering, zooming and per-mark descriptions: a tenth of the size as a picture."""
    kept = {key: value for key, value in spec.items() if key != "params"}
    if "layer" in kept:
        kept["layer"] = [_settled(layer) for layer in kept["layer"] if layer.get("name") not in FOR_THE_POINTER]
    kept["config"] = kept.get("config", {}) | {"aria": False}
    return kept


def _settled(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer in which what depends on a choice of series is as it is when all are chosen."""
    encoding = {channel: _chosen(code) for channel, code in layer.get("encoding", {}).items()}
    return layer | {"encoding": encoding}


def _chosen(code: Any) -> Any:
    """A channel without its condition, or the last of several, which is that of the choice."""
    if "condition" not in code:
        return code
    conditions = code["condition"]
    return {"value": (conditions[-1] if isinstance(conditions, list) else conditions)["value"]}


def svg(spec: Mapping[str, Any]) -> str:
    """A specification (`chart.to_dict()`) drawn as SVG."""
    return vl_convert.vegalite_to_svg(still(spec))


def png(drawn: str) -> bytes:
    """An SVG as a PNG of twice its size in pixels, sharp on dense screens."""
    return vl_convert.svg_to_png(drawn, scale=PNG_SCALE)
