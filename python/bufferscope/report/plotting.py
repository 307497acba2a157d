"""A network's drawing as coordinates of boxes, lines and texts, which the template writes as SVG.

The network is drawn twice: across, for screens and paper, and down, for phones and for networks too long for a page. A
link leaves its outer node in a straight line, with its label beside it, and turns near its inner node. So labels stay
apart, however many links meet at a node.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bufferscope.report.layout import Position, positions
from bufferscope.report.topology import DrawnLink, DrawnNetwork, Lane

CHARACTER = 6.8
"""The mean width of a label's character in pixels, at a font size of 13 pixels."""
LINE = 16
"""Height of a label's line."""
NODE_HEIGHT = 32
LANE_STEP = 6
"""The distance between the lines of different traffic."""
MARGIN = 12
WIDEST = 860
"""The largest width for which a page has room."""
MOST_LINES = 4
"""The most lines of a part of a label, such as the values of a sweep; a label has twice as many at most."""
LANES = 6
"""The number of colours for traffic."""
LONGEST_NAME = 14
TURN = 0.78
"""Where a link turns, as a share of the distance from its outer to its inner node."""
BOW = 90
"""For a link that goes around other nodes: how far its control point lies off the straight line."""

XY = tuple[float, float]
Placed = Mapping[str, Position]


@dataclass(frozen=True)
class Box:
    """A node; x and y are its centre."""

    x: float
    y: float
    width: float
    name: str
    title: str
    """The full name if `name` had to be shortened; otherwise empty."""
    is_end: bool
    """Whether traffic begins or ends here."""


@dataclass(frozen=True)
class Text:
    """Lines of text, the first at (x, y)."""

    x: float
    y: float
    anchor: str
    lines: tuple[str, ...]
    has_plate: bool
    """Whether it lies on a line; then it has a background that hides the line."""

    @property
    def left(self) -> float:
        """The left edge."""
        return self.x - self.width / 2 if self.anchor == "middle" else self.x

    @property
    def width(self) -> float:
        """The approximate width."""
        return round(max(len(line) for line in self.lines) * CHARACTER, 1)

    @property
    def top(self) -> float:
        """The upper edge."""
        return self.y - LINE + 3

    @property
    def height(self) -> float:
        """The height."""
        return LINE * len(self.lines)


@dataclass(frozen=True)
class DrawnPath:
    """A path's `d`; for traffic also the number of its colour, and the `d` of its arrowhead."""

    d: str
    colour: int = 0
    head: str = ""


@dataclass(frozen=True)
class Drawing:
    """One picture; (`left`, `top`) is its upper left corner."""

    direction: str
    """`across` or `down`."""
    left: float
    top: float
    width: float
    height: float
    boxes: tuple[Box, ...]
    links: tuple[DrawnPath, ...]
    lanes: tuple[DrawnPath, ...]
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class TopologyView:
    """A network on the page."""

    words: str
    drawings: tuple[Drawing, ...]
    legend: tuple[tuple[int, str], ...]
    """For each source, the number of its colour and its text."""


@dataclass(frozen=True)
class _Route:
    """How a link gets from one node to another: straight, over a corner, or in a curve towards a control point."""

    over: XY | None = None
    is_curved: bool = False
    outer: str = ""
    """The node near which the label stands, beside the link; if empty, the label stands on the middle of the link."""


@dataclass(frozen=True)
class _Plan:
    """Where everything is, before it is drawn."""

    at: Mapping[str, XY]
    routes: Mapping[frozenset[str], _Route]

    def route(self, one: str, other: str) -> _Route:
        """The route between two linked nodes."""
        return self.routes[frozenset((one, other))]


def view(network: DrawnNetwork) -> TopologyView:
    """The network drawn across, down or both, depending on which fit."""
    placed = positions(network.nodes, [link.ends for link in network.links], [lane.nodes for lane in network.lanes])
    layers = [layer for layer, _ in placed.values()]
    most = max(layers.count(layer) for layer in layers)
    drawings = []
    across = _across(network, placed, 1 + max(layers))
    if across.width <= WIDEST or most > 2:
        drawings.append(across)
    if most <= 2:
        drawings.append(_down(network, placed))
    legend = tuple((number % LANES, lane.words) for number, lane in enumerate(network.lanes))
    return TopologyView(network.words, tuple(drawings), legend)


def _across(network: DrawnNetwork, placed: Placed, layers: int) -> Drawing:
    node = max(_node_width(name) for name in network.nodes)
    room = (WIDEST - 2 * MARGIN - node) / max(1, layers - 1)
    gap = min(max(room, 116 + node), 260 + node)
    labels = {link.ends: _wrapped(link.words, TURN * gap - node - 4) for link in network.links}
    lanes = LANE_STEP * min(len(network.lanes), LANES)
    step = max(NODE_HEIGHT + 26, 26 + lanes + LINE * max(map(len, labels.values())))
    at = {name: (layer * gap, position * step) for name, (layer, position) in placed.items()}
    plan = _Plan(at, _routes(network.links, placed, at, across=True))
    texts = []
    for link in network.links:
        lines, route = labels[link.ends], plan.route(*link.ends)
        x, y = _beside(plan, link, route)
        height = LINE * (len(lines) - 1)
        texts.append(Text(x, y - 9 - height if route.outer else y + 5 - height / 2, "middle", lines, not route.outer))
    return _drawing("across", network, plan, texts, (0.0, 1.0))


def _down(network: DrawnNetwork, placed: Placed) -> Drawing:
    is_single = not any(position for _, position in placed.values())
    labels = {link.ends: _wrapped(link.words, 240 if is_single else 150) for link in network.links}
    step = (NODE_HEIGHT + 22 + LINE * max(map(len, labels.values()))) / (1 if is_single else TURN)
    at = {name: (position * 178, layer * step) for name, (layer, position) in placed.items()}
    plan = _Plan(at, _routes(network.links, placed, at, across=False))
    texts = []
    for link in network.links:
        lines, route = labels[link.ends], plan.route(*link.ends)
        x, y = _beside(plan, link, route)
        texts.append(Text(x + 10, y + 5 - LINE * (len(lines) - 1) / 2, "start", lines, not route.outer))
    return _drawing("down", network, plan, texts, (-1.0, 0.0))


def _routes(
    links: Sequence[DrawnLink], placed: Placed, at: Mapping[str, XY], *, across: bool
) -> dict[frozenset[str], _Route]:
    """A route for each link. Only one link leaves a node straight on each side, because its label stands there."""
    found: dict[frozenset[str], _Route] = {}
    used: set[tuple[str, int]] = set()
    for link in links:
        inner, outer = sorted(link.ends, key=lambda name: (abs(placed[name][1]), name))
        side = placed[inner][0] - placed[outer][0]
        if abs(side) != 1 or (outer, side) in used:
            control = _around(at, *link.ends)
            found[frozenset(link.ends)] = _Route(control, control is not None)
            continue
        used.add((outer, side))
        (x0, y0), (x1, y1) = at[outer], at[inner]
        if placed[inner][1] == placed[outer][1]:
            found[frozenset(link.ends)] = _Route(outer=outer)
        else:
            corner = (x0 + TURN * (x1 - x0), y0) if across else (x0, y0 + TURN * (y1 - y0))
            found[frozenset(link.ends)] = _Route(corner, outer=outer)
    return found


def _around(at: Mapping[str, XY], one: str, other: str) -> XY | None:
    """The control point of a curve around the nodes on the straight line; None if there are no such nodes."""
    (x0, y0), (x1, y1) = (at[name] for name in sorted((one, other)))
    length = math.hypot(x1 - x0, y1 - y0)
    for name, (x, y) in at.items():
        if name in (one, other):
            continue
        along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length
        off = abs((x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)) / length
        if 0 < along < length and off < NODE_HEIGHT:
            return (x0 + x1) / 2 + (y1 - y0) / length * BOW, (y0 + y1) / 2 - (x1 - x0) / length * BOW
    return None


def _beside(plan: _Plan, link: DrawnLink, route: _Route) -> XY:
    """The middle of the part of a link beside which its label stands."""
    one, other = (plan.at[name] for name in link.ends)
    if route.outer:
        start = plan.at[route.outer]
        end = route.over or (other if link.ends[0] == route.outer else one)
        return _middle(start, end)
    middle = _middle(one, other)
    return _middle(middle, route.over) if route.over else middle


def _drawing(direction: str, network: DrawnNetwork, plan: _Plan, texts: Sequence[Text], aside: XY) -> Drawing:
    """The picture with its margins; `aside` is the direction in which traffic is drawn beside the links."""
    ends = {node for lane in network.lanes for node in (lane.nodes[0], lane.nodes[-1])}
    boxes = [_box(name, plan.at[name], name in ends or not ends) for name in network.nodes]
    left = min([box.x - box.width / 2 for box in boxes] + [text.left for text in texts]) - MARGIN
    right = max([box.x + box.width / 2 for box in boxes] + [text.left + text.width for text in texts]) + MARGIN
    top = min([box.y - NODE_HEIGHT / 2 for box in boxes] + [text.top for text in texts]) - MARGIN
    bottom = max([box.y + NODE_HEIGHT / 2 for box in boxes] + [text.top + text.height for text in texts]) + MARGIN
    return Drawing(
        direction,
        *(round(left), round(top), round(right - left), round(bottom - top)),
        boxes=tuple(boxes),
        links=tuple(DrawnPath(_path(plan, link.ends, (0.0, 0.0))[0]) for link in network.links),
        lanes=tuple(_lane(plan, lane, aside, number) for number, lane in enumerate(network.lanes)),
        texts=tuple(texts),
    )


def _box(name: str, middle: XY, is_end: bool) -> Box:
    shown = _shown(name)
    title = name if shown != name else ""
    return Box(round(middle[0], 1), round(middle[1], 1), round(_node_width(name), 1), shown, title, is_end)


def _shown(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _node_width(name: str) -> float:
    return max(44, 8.4 * len(_shown(name)) + 20)


def _wrapped(lines: Sequence[str], width: float) -> tuple[str, ...]:
    """Lines broken at blanks to fit a width in pixels; a label that would be higher than a network ends early."""
    most = max(10, int(width / CHARACTER))
    found = [part for line in lines for part in _shortened(textwrap.wrap(line, most, break_long_words=False))]
    return tuple(_shortened(found, 2 * MOST_LINES)) or ("",)


def _shortened(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """The first lines; the last of them ends in an ellipsis if there are more."""
    return [*lines] if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1].rstrip(' ,;')} …"]


def _lane(plan: _Plan, lane: Lane, aside: XY, number: int) -> DrawnPath:
    """The line of traffic beside the links, from the edge of the sender's box to the edge of the receiver's."""
    distance = 6 + LANE_STEP * (number % LANES)
    d, before, end = _path(plan, lane.nodes, (aside[0] * distance, aside[1] * distance), trimmed=True)
    return DrawnPath(d, number % LANES, _head(before, end))


def _path(plan: _Plan, nodes: Sequence[str], offset: XY, *, trimmed: bool = False) -> tuple[str, XY, XY]:
    """A path's `d` over these nodes, its second to last and its last point.

    If `trimmed`, the path begins and ends at the edges of the first and the last box.
    """
    points = [_moved(plan.at[node], offset) for node in nodes]
    routes = [plan.route(*hop) for hop in pairwise(nodes)]
    overs = [_moved(route.over, offset) if route.over else None for route in routes]
    if trimmed:
        points[0] = _outside(points[0], overs[0] or points[1], _node_width(nodes[0]), 2)
        points[-1] = _outside(points[-1], overs[-1] or points[-2], _node_width(nodes[-1]), 5)
    d = f"M{_written(points[0])}"
    for route, over, end in zip(routes, overs, points[1:], strict=True):
        if over is None:
            d += f"L{_written(end)}"
        else:
            d += f"{'Q' if route.is_curved else 'L'}{_written(over)}{' ' if route.is_curved else 'L'}{_written(end)}"
    return d, overs[-1] or points[-2], points[-1]


def _head(start: XY, end: XY) -> str:
    """An arrowhead whose tip lies a little beyond `end`."""
    length = math.hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    x, y = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    tip = end[0] + 3 * x, end[1] + 3 * y
    corners = [(tip[0] - 9 * x + side * 4 * y, tip[1] - 9 * y - side * 4 * x) for side in (1, -1)]
    return "M" + "L".join(_written(point) for point in (tip, *corners)) + "Z"


def _outside(of: XY, towards: XY, width: float, gap: float) -> XY:
    """The point `gap` beyond the edge at which a line from a box's centre towards another point leaves the box."""
    dx, dy = towards[0] - of[0], towards[1] - of[1]
    shares = [reach / abs(d) for reach, d in ((width / 2 + gap, dx), (NODE_HEIGHT / 2 + gap, dy)) if d]
    return _moved(of, (dx * min(shares, default=0.0), dy * min(shares, default=0.0)))


def _moved(point: XY, by: XY) -> XY:
    return point[0] + by[0], point[1] + by[1]


def _middle(one: XY, other: XY) -> XY:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def _written(point: XY) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
