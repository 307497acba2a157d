"""Labels inside a plot: marks that nearly coincide share one, and the lines from marks to labels do not cross.

Labels are placed for the least width of a plot. Each is anchored at a position on the axes, and its line ends there. In
a wider plot all distances between such positions grow and the words do not: what is apart in the narrow plot stays
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from bufferscope.base.libraries import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


LINE = 15
"""Height in pixels of a line of a label."""
NARROW, SLIM, BROAD = "fijlrt,.;:'|!()[] I", "cksvxyz-/J", "mwMW@%"
NARROW_LETTER, SLIM_LETTER, LETTER, BROAD_LETTER = 4.0, 6.4, 7.0, 10.5
"""Pixels: the widths of letters in common fonts without serifs, at the size of a label's words, rounded up."""
SPARE = 6
"""Pixels between a label's anchor and its words."""
MOST_NAMES, MOST_WIDTH = 3, 130
"""Names in a line and its pixels, unless a single name is longer."""
NEAR, FAR, MOST = 12, 40, 6
"""Marks within `NEAR` pixels of one another share a label; within `FAR` pixels if there would be more than `MOST`."""
STEP, ROUNDS, ORDERS = 8, 4, 8
"""Pixels between the positions that are tried, how often all labels are placed again, and the orders that are tried."""
OVERLAP, CROSSING, HIDING = 2000.0, 900.0, 150.0
"""The cost, in pixels of a line, of words on words or marks, of crossing lines, and of what is only less clear."""

Position = tuple[float, float]
"""Pixels from the upper left corner of the plot."""
Group = tuple[Sequence[int], Sequence[tuple[str, str]]]
"""The marks that share a label, and its lines: words, each with the name of a colour."""
Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in the same pixels."""
Array: TypeAlias = "NDArray[np.float64]"
Align = Literal["left", "center", "right"]
ALIGNS: tuple[Align, ...] = ("left", "center", "right")


@dataclass(frozen=True)
class Label:
    """A label where it stands."""

    members: tuple[int, ...]
    lines: tuple[tuple[str, str], ...]
    """Words with the colour's name."""
    align: Align
    anchor: float
    """The end of the words (or their middle), in pixels from the left."""
    top: float
    mark: int
    """The member that the line comes from."""
    end: Position
    """Of that line."""


def shared(marks: Sequence[Position], colours: Sequence[str]) -> list[list[int]]:
    """The marks in groups of those that are close to one another, from left to right.

    Beyond `NEAR`, marks of different colours count as half as far again from one another.
    """
    groups = [[index] for index in range(len(marks))]
    positions = np.array(marks, dtype=float).reshape(-1, 2)
    distance = np.hypot(*(positions[:, None] - positions[None]).transpose(2, 0, 1))
    differ = np.array([[one != other for other in colours] for one in colours])
    distance *= np.where(differ & (distance > NEAR), 1.5, 1.0)
    while len(groups) > 1:
        pairs = [(a, b) for b in range(len(groups)) for a in range(b)]
        span, a, b = min((float(distance[np.ix_(groups[a], groups[b])].max()), a, b) for a, b in pairs)
        if span > (FAR if len(groups) > MOST else NEAR):
            break
        groups[a] += groups.pop(b)
    return sorted((sorted(group) for group in groups), key=lambda group: min(marks[index] for index in group))


def wrapped(names: Sequence[str], colours: Sequence[str], order: Sequence[str]) -> list[tuple[str, str]]:
    """The names in lines of one colour."""
    lines: list[tuple[str, str]] = []
    for colour in sorted(set(colours), key=order.index):
        line: list[str] = []
        for name in (name for name, own in zip(names, colours, strict=True) if own == colour):
            if line and (len(line) == MOST_NAMES or words_width(", ".join([*line, name])) > MOST_WIDTH):
                lines.append((", ".join(line), colour))
                line = []
            line.append(name)
        lines.append((", ".join(line), colour))
    return lines


def words_width(words: str) -> float:
    """About how many pixels the words take."""
    narrow, slim, broad = (sum(words.count(letter) for letter in letters) for letters in (NARROW, SLIM, BROAD))
    others = len(words) - narrow - slim - broad
    return NARROW_LETTER * narrow + SLIM_LETTER * slim + BROAD_LETTER * broad + LETTER * others


def place(
    marks: Sequence[Position],
    grouped: Sequence[Group],
    size: tuple[float, float],
    kept_free: Sequence[Box] = (),
    avoided: Sequence[Position] = (),
) -> list[Label]:
    """The labels of groups of marks, placed in a plot of this size, each with its lines.

    They keep off the boxes `kept_free`, and off the positions `avoided` if they can.
    """
    plot = _Plot(marks, size, kept_free, _Counted(avoided, size))
    candidates = [_Candidates(plot, group) for group in grouped]
    tried = [_improved(candidates, order) for order in _orders(grouped)]
    return min(tried, key=lambda found: found[0])[1] if grouped else []


@dataclass(frozen=True)
class _Plot:
    marks: Sequence[Position]
    size: tuple[float, float]
    kept_free: Sequence[Box]
    avoided: _Counted


class _Counted:
    """Positions in a plot, counted in its cells: how many are in a box is known from the sums up to its corners."""

    CELL = 2

    def __init__(self, positions: Sequence[Position], size: tuple[float, float]) -> None:
        across, down = (int(length / self.CELL) + 1 for length in size)
        self.sums = np.zeros((across + 1, down + 1))
        inside = np.array([(x, y) for x, y in positions if 0 <= x <= size[0] and 0 <= y <= size[1]])
        if inside.size:
            np.add.at(self.sums, tuple((inside / self.CELL).astype(int).T + 1), 1)
        self.sums = self.sums.cumsum(axis=0).cumsum(axis=1)

    def between(self, left: Array, top: Array, right: Array, bottom: Array) -> Array:
        """The number of positions in boxes, to the nearest cell."""
        x1, x2 = (self._cells(edge, 0) for edge in (left, right))
        y1, y2 = (self._cells(edge, 1) for edge in (top, bottom))
        return np.asarray(self.sums[x2, y2] - self.sums[x1, y2] - self.sums[x2, y1] + self.sums[x1, y1])

    def _cells(self, edge: Array, axis: int) -> NDArray[np.int64]:
        return np.clip(np.rint(edge / self.CELL), 0, self.sums.shape[axis] - 1).astype(np.int64)


def _orders(grouped: Sequence[Group]) -> list[list[int]]:
    """Orders in which labels are placed. The first of them find more room, so different ones are worth a try."""
    count = len(grouped)
    across = list(range(count))
    by_size = sorted(across, key=lambda index: -_extent(grouped[index][1])[0])
    outwards = sorted(across, key=lambda index: abs(2 * index - count))
    found = [across, across[::-1], by_size, by_size[::-1], outwards, outwards[::-1]]
    found += [across[start:] + across[:start] for start in range(1, count)]
    return [list(order) for order in dict.fromkeys(map(tuple, found))][:ORDERS]


def _improved(candidates: Sequence[_Candidates], order: Sequence[int]) -> tuple[float, list[Label]]:
    """Labels placed one after another, again and again until all stay where they are; and what they cost."""
    labels: dict[int, Label] = {}
    costs: dict[int, float] = {}
    for _ in range(ROUNDS):
        before = dict(labels)
        for own in order:
            others = [label for index, label in labels.items() if index != own]
            costs[own], labels[own] = candidates[own].best(others)
        if labels == before:
            break
    return sum(costs.values()), [labels[index] for index in sorted(labels)]


def box(label: Label) -> Box:
    """The box that a label's words take."""
    width, height = _extent(label.lines)
    left = label.anchor - width * ALIGNS.index(label.align) / 2
    return left, label.top, left + width, label.top + height


def _extent(lines: Sequence[tuple[str, str]]) -> tuple[float, float]:
    return max(words_width(words) for words, _ in lines) + SPARE, len(lines) * LINE


class _Candidates:
    """The positions that a label can have, each with its line, and what they cost without other labels."""

    def __init__(self, plot: _Plot, group: Group) -> None:
        (self.members, self.lines), self.marks, size = group, plot.marks, plot.size
        width, height = _extent(self.lines)
        tops = np.arange(0.0, max(size[1] - height, 0.0) + 1, STEP)
        anchors = np.arange(0.0, size[0] + 1, STEP)
        align, anchor, top = (each.ravel() for each in np.meshgrid(np.arange(3), anchors, tops, indexing="ij"))
        left = anchor - width * align / 2
        inside = (left >= 0) & (left + width <= size[0])
        if not inside.any():  # words that are longer than the plot is wide begin at its left edge
            inside = (align == 0) & (anchor == 0)
        self.align, self.top, left = align[inside], top[inside], left[inside]
        self.box = left, self.top, left + width, self.top + height

        own = np.array([self.marks[index] for index in self.members])
        beside = np.clip(own[:, 1, None], self.top + LINE / 2, self.box[3] - LINE / 2)
        above_or_below = np.where(own[:, 1, None] < self.top + height / 2, self.top, self.box[3])
        ends = np.where(self.align == 1, above_or_below, beside)
        lengths = np.hypot(own[:, 0, None] - anchor[inside], own[:, 1, None] - ends)
        self.nearest = lengths.argmin(axis=0)
        every = np.arange(len(self.top))
        start_x, start_y = own[self.nearest].T
        self.line = start_x, start_y, anchor[inside], ends[self.nearest, every]
        self.alone = lengths[self.nearest, every] + self._hides(plot)

    def _hides(self, plot: _Plot) -> Array:
        left, top, right, bottom = self.box
        cost = HIDING / 6 * plot.avoided.between(left - 2, top - 2, right + 2, bottom + 2)
        for index, (x, y) in enumerate(self.marks):
            cost += OVERLAP * _overlap(self.box, (x, y, x, y), 7, 7)
            if index not in self.members:
                cost += HIDING * (_from_line(x, y, *self.line) < 6)
        for taken in plot.kept_free:
            cost += self._beside(taken)
        return cost + CROSSING * _enters(*self.line, (left + 1, top + 1, right - 1, bottom - 1))

    def _beside(self, taken: Box) -> Array:
        """What words and lines cost beside a box that has other words."""
        return OVERLAP * _overlap(self.box, taken, 5, 3) + CROSSING * _enters(*self.line, taken)

    def best(self, others: Sequence[Label]) -> tuple[float, Label]:
        """The best position of the label beside others, and what it costs there."""
        cost = self.alone.copy()
        for other in others:
            line = (*self.marks[other.mark], *other.end)
            cost += self._beside(box(other)) + CROSSING * (_cross(self.line, line) + _enters(*line, self.box))
        at = int(cost.argmin())
        end = float(self.line[2][at]), float(self.line[3][at])
        align, mark = ALIGNS[int(self.align[at])], self.members[int(self.nearest[at])]
        label = Label(tuple(self.members), tuple(self.lines), align, end[0], float(self.top[at]), mark, end)
        return float(cost[at]), label


def _overlap(boxes: tuple[Array, Array, Array, Array], other: Box, across: float, down: float) -> Array:
    """Whether boxes overlap another, or leave less room than this between it and them."""
    left, top, right, bottom = boxes
    within = (left < other[2] + across) & (right > other[0] - across)
    return np.asarray(within & (top < other[3] + down) & (bottom > other[1] - down)).astype(float)


def _from_line(x: float, y: float, x1: Array, y1: Array, x2: Array, y2: Array) -> Array:
    """The distance of a position from lines."""
    along = (x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)
    share = np.clip(along / np.maximum((x2 - x1) ** 2 + (y2 - y1) ** 2, 1e-9), 0, 1)
    return np.asarray(np.hypot(x1 + share * (x2 - x1) - x, y1 + share * (y2 - y1) - y))


def _cross(lines: tuple[Array, Array, Array, Array], other: tuple[float, float, float, float]) -> Array:
    """Whether lines cross another."""
    (x1, y1, x2, y2), (x3, y3, x4, y4) = lines, other

    def side(ax: float | Array, ay: float | Array, bx: float | Array, by: float | Array, x: float | Array,
             y: float | Array) -> Array:  # fmt: skip
        return np.asarray((bx - ax) * (y - ay) - (by - ay) * (x - ax))

    apart = side(x1, y1, x2, y2, x3, y3) * side(x1, y1, x2, y2, x4, y4) < 0
    both = apart & (side(x3, y3, x4, y4, x1, y1) * side(x3, y3, x4, y4, x2, y2) < 0)
    return both.astype(float)


def _enters(
    x1: float | Array,
    y1: float | Array,
    x2: float | Array,
    y2: float | Array,
    within: tuple[float | Array, float | Array, float | Array, float | Array],
) -> Array:
    """Whether lines pass through boxes (after Liang and Barsky: the part of the line between the edges)."""
    first, last = np.zeros(1), np.ones(1)
    for start, step, low, high in ((x1, x2 - x1, within[0], within[2]), (y1, y2 - y1, within[1], within[3])):
        run = np.where(np.abs(step) < 1e-9, 1e-9, step)
        one, two = (low - start) / run, (high - start) / run
        first, last = np.maximum(first, np.minimum(one, two)), np.minimum(last, np.maximum(one, two))
    return np.asarray(last - first > 1e-6).astype(float)
