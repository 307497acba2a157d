"""Pictures for inside a page: SVGs of Vega with the same look in a tenth of the characters.

Coordinates have one decimal, lines have no vertex that moves them by less than half a pixel, and neighbours of the same
style share an element.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

Vertex = tuple[float, float]
Style = tuple[tuple[str, str], ...]
"""The attributes of an element apart from its position and its shape."""

TOLERANCE = 0.5
"""How far a line may move, in pixels."""
DENSE = 60
"""A line with so many vertices is drawn through whole pixels."""
_RUN = re.compile(r"(?:<(?:path|line) [^>]*/>)+")
_ELEMENT = re.compile(r"<(path|line) ([^>]*)/>")
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_PLACE = re.compile(r"translate\((-?[\d.e-]+),(-?[\d.e-]+)\)")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_STRAIGHT = re.compile(r"[MLZ\d.,e-]+")
_CIRCLE = re.compile(r"M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0")
_BOX = re.compile(r"M([\d.-]+),[\d.-]+h([\d.]+)v[\d.-]+h-[\d.]+Z")
_IDLE = re.compile(r' (?:aria-[\w-]+|role|class|pointer-events)="[^"]*"')
_UNSEEN = re.compile(
    r'<path[^>]*(?: d="(?:M0,0h0v0h0Z)?"|display="none")[^>]*/>|<text[^>]* opacity="0"[^>]*>[^<]*</text>'
)
_FIXED_WIDTH = re.compile(r'(<text[^>]*) textLength="[^"]*" lengthAdjust="[^"]*"(?=[^>]*>[^<]{1,4}</text>)')
"""The width of a word of four letters or fewer, which differs too little between fonts to be fixed."""


def slim(svg: str) -> str:
    """The picture in fewer characters."""
    svg = _FIXED_WIDTH.sub(r"\1", _UNSEEN.sub("", _IDLE.sub("", svg)))
    svg = _RUN.sub(lambda run: "".join(_together(run[0])), svg)
    svg = re.sub(r"translate\([^)]*\)", lambda found: _short(found[0]), svg)
    svg = _with_one(_with_one(svg, "font-family"), "font-size").replace(' opacity="1"', "").replace("<g></g>", "")
    return svg.replace("'", "&apos;").replace('"', "'")  # which needs no escape in a URL


def _together(run: str) -> Iterator[str]:
    """The elements of a run; those of the same kind and style together."""
    shapes = [_shape(kind, dict(_ATTRIBUTE.findall(attributes))) for kind, attributes in _ELEMENT.findall(run)]
    for (style, is_merged), own in groupby(shapes, key=lambda shape: shape[:2]):
        paths = [path for _, _, path in own]
        paths = ["".join(paths)] if is_merged else _side_by_side(paths)
        if len(paths) == 1:
            yield f'<path{_written(style)} d="{paths[0]}"/>'
        else:
            # A group's own opacity would apply to all of them as one picture.
            each = tuple((f"fill-{key}" if key == "opacity" else key, value) for key, value in style)
            yield f"<g{_written(each)}>" + "".join(f'<path d="{path}"/>' for path in paths) + "</g>"


def _side_by_side(paths: list[str]) -> list[str]:
    """Boxes of one style in as few paths as there are boxes above one another: those in one path never overlap."""
    boxes = [_BOX.fullmatch(path) for path in paths]
    ends: list[float] = []
    layers: list[list[str]] = []
    for box in sorted((box for box in boxes if box), key=lambda box: float(box[1])):
        start = float(box[1])
        free = next((number for number, end in enumerate(ends) if end <= start), len(ends))
        if free == len(ends):
            ends.append(start)
            layers.append([])
        ends[free] = start + float(box[2])
        layers[free].append(box[0])
    others = [path for path, box in zip(paths, boxes, strict=True) if not box]
    return ["".join(layer) for layer in layers] + others


def _shape(kind: str, attributes: dict[str, str]) -> tuple[Style, bool, str]:
    """An element's style, whether it can be one path with others of that style, and its path."""
    x, y = (float(part) for part in _offset(attributes.pop("transform", "")))
    if kind == "line":
        x += float(attributes.pop("x1", 0))
        y += float(attributes.pop("y1", 0))
        to = float(attributes.pop("x2", 0)), float(attributes.pop("y2", 0))
        return tuple(attributes.items()), True, f"M{_1(x)} {_1(y)}l{_1(to[0])} {_1(to[1])}"
    path = attributes.pop("d")
    if (circle := _CIRCLE.fullmatch(path)) and "stroke" not in attributes:
        drawn = {"stroke": attributes.pop("fill", "none"), **attributes, "fill": "none", "stroke-linecap": "round"}
        drawn["stroke-width"] = _1(2 * float(circle[1]))
        return tuple(drawn.items()), True, f"M{_1(x)} {_1(y)}h0"
    if _STRAIGHT.fullmatch(path) and not (x or y):
        return tuple(attributes.items()), False, "".join(map(_line, path.split("M")[1:]))
    if x or y:
        attributes["transform"] = f"translate({_1(x)},{_1(y)})"
    is_apart = "opacity" in attributes or "transform" in attributes
    return tuple(attributes.items()), not is_apart and "stroke" not in attributes, _short(path)


def _offset(transform: str) -> tuple[str, str]:
    found = _PLACE.fullmatch(transform)
    return (found[1], found[2]) if found else ("0", "0")


def _line(text: str) -> str:
    """A line through absolute positions, without those that it does not need; steps are relative."""
    closes = "z" if text.endswith("Z") and "L" in text else ""
    text = text.removesuffix("Z")
    vertices = [(float(x), float(y)) for x, y in (pair.split(",") for pair in text.split("L"))]
    kept = simplified(vertices)
    decimals = 1 if len(kept) < DENSE else None
    kept = [(round(x, decimals), round(y, decimals)) for x, y in kept]
    steps = [
        f"{_1(after[0] - before[0])},{_1(after[1] - before[1])}" for before, after in pairwise(kept) if after != before
    ]
    path = f"M{_1(kept[0][0])},{_1(kept[0][1])}" + ("l" + " ".join(steps) if steps else "h0") + closes
    return path.replace(",-", "-").replace(" -", "-")


def simplified(vertices: Sequence[Vertex]) -> list[Vertex]:
    """A line without vertices nearer than `TOLERANCE` to the line between those kept (Douglas and Peucker, 1973)."""
    keep = {0, len(vertices) - 1}
    parts = [(0, len(vertices) - 1)]
    while parts:
        first, last = parts.pop()
        (x, y), (to_x, to_y) = vertices[first], vertices[last]
        dx, dy = to_x - x, to_y - y
        length = math.hypot(dx, dy)
        farthest, most = first, TOLERANCE
        for number in range(first + 1, last):
            px, py = vertices[number][0] - x, vertices[number][1] - y
            # Beyond an end of the line, the distance is that from the end.
            along = (px * dx + py * dy) / length if length else -1.0
            distance = abs(px * dy - py * dx) / length if 0 <= along <= length else math.hypot(px, py)
            if distance > most:
                farthest, most = number, distance
        if farthest != first:
            keep.add(farthest)
            parts += [(first, farthest), (farthest, last)]
    return [vertices[number] for number in sorted(keep)]


def _with_one(svg: str, attribute: str) -> str:
    """The value of an attribute that most texts have is that of the picture itself, and they inherit it."""
    values = re.findall(rf' {attribute}="([^"]*)"', svg)
    if not values:
        return svg
    usual = f' {attribute}="{max(set(values), key=values.count)}"'
    return svg.replace(usual, "").replace("<svg", f"<svg{usual}", 1)


def _short(text: str) -> str:
    return _NUMBER.sub(lambda number: _1(float(number[0])), text)


def _1(value: float) -> str:
    """A number with one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    if text.startswith(("0.", "-0.")):
        return text.replace("0.", ".", 1)
    return "0" if text == "-0" else text


def _written(style: Style) -> str:
    return "".join(f' {key}="{value}"' for key, value in style)
