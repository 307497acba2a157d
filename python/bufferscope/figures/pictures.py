"""Charts as pictures: SVG and PNG without what only serves a pointer."""

import copy
from collections.abc import Mapping
from typing import Any

import vl_convert

from bufferscope.figures.parts import HOVER

PNG_SCALE = 2


def still(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without hovering, zooming and per-mark descriptions: a tenth of the size as a picture."""
    kept = copy.deepcopy(dict(spec))
    kept.pop("params", None)
    if "layer" in kept:
        kept["layer"] = [layer for layer in kept["layer"] if layer.get("name") != HOVER]
    kept["config"] = kept.get("config", {}) | {"aria": False}
    return kept


def svg(spec: Mapping[str, Any]) -> str:
    """A specification (`chart.to_dict()`) drawn as SVG."""
    return vl_convert.vegalite_to_svg(still(spec))


def png(drawn: str) -> bytes:
    """An SVG as a PNG of twice its size in pixels, sharp on dense screens."""
    return vl_convert.svg_to_png(drawn, scale=PNG_SCALE)
