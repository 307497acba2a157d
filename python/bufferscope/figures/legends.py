"""The layout of legends: in lines that fit above the plot.

`report/templates/page.js` does the same for the width of a page.
"""

from collections.abc import Iterator, Mapping
from typing import Any

CHARACTER, SYMBOL = 7.2, 40
"""Widths in pixels: of a letter in a legend, and of an entry's symbol with the gaps around it."""
CHANNELS = ("color", "strokeDash", "shape")


def layout(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the legends of a specification; empty if their entries fit beside the title in one line."""
    legends = list(_legends(spec))
    width = _width(spec)
    if width is None or all(_length(names, title) <= width for names, title in legends):
        return {}
    names, _ = max(legends, key=lambda legend: _length(*legend))
    columns = max(1, min(len(names), int(width / max(CHARACTER * len(name) + SYMBOL for name in names))))
    return {"columns": columns, "titleOrient": "top", "layout": {"top": {"direction": "vertical"}}}


def _legends(spec: Mapping[str, Any]) -> Iterator[tuple[list[str], str]]:
    """The entries and the title of each legend."""
    for plot in spec.get("concat", [spec]):
        for layer in plot.get("layer", ()):
            encoding = layer.get("encoding", {})
            for code in (encoding[channel] for channel in CHANNELS if channel in encoding):
                if names := code.get("scale", {}).get("domain"):
                    shown = code.get("legend", True) is not None and all(isinstance(name, str) for name in names)
                    yield from [(names, code.get("title") or "")] if shown else []


def _length(names: list[str], title: str) -> float:
    return sum(CHARACTER * len(name) + SYMBOL for name in names) + CHARACTER * len(title)


def _width(spec: Mapping[str, Any]) -> int | None:
    """The width of the plot, or of the panels beside one another."""
    if "concat" not in spec:
        return spec["width"] if isinstance(spec.get("width"), int) else None
    columns = spec.get("columns") or len(spec["concat"])
    return sum(int(panel.get("width", 0)) for panel in spec["concat"][:columns]) or None
