"""Charts as pictures, without the parts that only serve a pointer."""

from collections.abc import Mapping
from typing import Any

from bufferscope.figures import legends, lettering, zooming
from bufferscope.figures.pointer import CROSSHAIR, HOVER

FOR_THE_POINTER = (HOVER, CROSSHAIR, zooming.DRAG)
"""The names with which those layers begin that pictures leave out."""
PPI, CSS_PPI = 144, 72
"""Pixels per inch of a PNG, and of a PNG with one pixel for each pixel of the SVG."""


def still(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without hovering, zooming and descriptions of marks; its picture has a tenth of the size."""
    kept = {key: value for key, value in spec.items() if key != "params"}
    if "layer" in kept:
        kept["layer"] = _seen(kept["layer"])
    if "concat" in kept:
        kept["concat"] = [panel | {"layer": _seen(panel["layer"])} for panel in kept["concat"]]
    config = kept.get("config", {})
    legend = config.get("legend", {}) | legends.layout(kept)
    kept["config"] = config | {"aria": False, "font": lettering.FONT, "legend": legend}
    return kept


def _seen(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The layers that are not only there for the pointer."""
    return [_settled(layer) for layer in layers if not layer.get("name", "").startswith(FOR_THE_POINTER)]


def _settled(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer whose encodings don't depend on the choice of series, but are those with all series chosen."""
    encoding = {channel: _chosen(code) for channel, code in zooming.whole(layer.get("encoding", {})).items()}
    return {key: value for key, value in layer.items() if key != "params"} | {"encoding": encoding}


def _chosen(code: Any) -> Any:
    """A channel with the value of its condition; of several conditions the last, which depends on the choice."""
    if "condition" not in code:
        return code
    conditions = code["condition"]
    return {"value": (conditions[-1] if isinstance(conditions, list) else conditions)["value"]}


def svg(spec: Mapping[str, Any]) -> str:
    """A specification (`chart.to_dict()`) drawn as SVG."""
    import vl_convert

    return lettering.settled(vl_convert.vegalite_to_svg(still(spec)))


def drawn(spec: Mapping[str, Any], kind: str, *, ppi: float | None = None, scale_factor: float = 1, **_: Any) -> bytes:
    """A specification drawn as `svg`, `png` or `pdf`; a PNG has 144 pixels per inch unless an option is set."""
    import vl_convert

    if kind == "svg":
        return svg(spec).encode("utf-8")
    if kind == "pdf":
        return vl_convert.vegalite_to_pdf(still(spec))
    resolution = ppi or (PPI if scale_factor == 1 else CSS_PPI)
    return vl_convert.vegalite_to_png(still(spec), scale=scale_factor, ppi=resolution)
