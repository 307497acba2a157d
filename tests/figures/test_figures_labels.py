"""Labels inside a plot: which marks share one, how their names are wrapped, and where they stand."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from bufferscope.figures import labels
from bufferscope.figures.labels import Box, Label, Position

SIZE = (280.0, 220.0)


def test_marks_share_a_label_if_they_nearly_coincide() -> None:
    marks = [(200.0, 50.0), (20.0, 50.0), (28.0, 50.0), (24.0, 58.0)]
    assert labels.shared(marks, ["a"] * 4) == [[1, 2, 3], [0]]


def test_a_row_of_many_marks_is_not_one_group_but_fewer_than_its_marks() -> None:
    marks = [(10.0 * number, 50.0) for number in range(24)]
    groups = labels.shared(marks, ["a"] * 24)
    assert 4 <= len(groups) <= labels.MOST + 2
    assert sorted(itertools.chain(*groups)) == list(range(24))
    assert all(marks[group[-1]][0] - marks[group[0]][0] <= labels.FAR for group in groups)


def test_marks_of_one_colour_rather_share_a_label() -> None:
    apart = [(280.0, 40.0 * number) for number in range(labels.MOST - 1)]
    marks = [(20.0, 50.0), (40.0, 50.0), (62.0, 50.0), *apart]
    groups = labels.shared(marks, ["red", "blue", "blue", *["red"] * len(apart)])
    assert groups[:2] == [[0], [1, 2]]


def test_lines_hold_at_most_three_names_of_one_colour() -> None:
    names = ["a", "b", "c", "d", "e"]
    assert labels.wrapped(names, ["x", "y", "x", "x", "x"], ["y", "x"]) == [("b", "y"), ("a, c, d", "x"), ("e", "x")]


def test_long_names_have_lines_of_their_own() -> None:
    long = "a name of many letters and words"
    assert labels.wrapped([long, "b", "c"], ["x"] * 3, ["x"]) == [(long, "x"), ("b, c", "x")]


def test_one_mark_has_its_name_beside_it() -> None:
    (label,) = labels.place([(100.0, 100.0)], [([0], [("codel", "x")])], SIZE)
    left, top, right, bottom = labels.box(label)
    assert not (left < 100 < right and top < 100 < bottom)
    assert np.hypot(label.end[0] - 100, label.end[1] - 100) < 20


def test_words_keep_off_the_boxes_and_the_places_that_have_others() -> None:
    mark, taken = (100.0, 100.0), (104.0, 0.0, 280.0, 220.0)
    (label,) = labels.place([mark], [([0], [("codel", "x")])], SIZE, [taken])
    assert labels.box(label)[2] <= 104
    scatter = [(x, y) for x in np.arange(0.0, 280, 4) for y in np.arange(0.0, 100, 4)]
    (label,) = labels.place([mark], [([0], [("codel", "x")])], SIZE, (), scatter)
    assert labels.box(label)[1] >= 96


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("wider", [1.0, 1.4])
def test_words_are_apart_and_lines_cross_neither_lines_nor_words(seed: int, wider: float) -> None:
    """Also in a wider plot, in which the words are as wide as before."""
    random = np.random.default_rng(seed)
    marks: list[Position] = [(float(x), float(y)) for x, y in random.uniform((10, 10), (270, 210), (9, 2))]
    groups = labels.shared(marks, ["x"] * len(marks))
    names = [(members, [(", ".join("codel" for _ in members), "x")]) for members in groups]
    placed = labels.place(marks, names, SIZE)
    boxes = [_widened(label, wider) for label in placed]
    lines = [_line(label, marks, wider) for label in placed]
    for left, top, right, bottom in boxes:
        assert min(left, top) >= 0
        assert right <= SIZE[0] * wider
        assert bottom <= SIZE[1]
        assert not any(left < x * wider < right and top < y < bottom for x, y in marks)
    for one, other in itertools.combinations(range(len(placed)), 2):
        assert not _overlap(boxes[one], boxes[other])
        assert not _cross(*lines[one], *lines[other])
        assert not _through(lines[one], boxes[other])
        assert not _through(lines[other], boxes[one])


def _widened(label: Label, wider: float) -> Box:
    left, top, right, bottom = labels.box(label)
    moved = label.anchor * (wider - 1)
    return left + moved, top, right + moved, bottom


def _line(label: Label, marks: Sequence[Position], wider: float) -> tuple[Position, Position]:
    (x, y), (end_x, end_y) = marks[label.mark], label.end
    return (x * wider, y), (end_x * wider, end_y)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _cross(a: Position, b: Position, c: Position, d: Position) -> bool:
    def turn(p: Position, q: Position, r: Position) -> float:
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0


def _through(line: tuple[Position, Position], box: Box) -> bool:
    (x1, y1), (x2, y2) = line
    along = [(x1 + share * (x2 - x1), y1 + share * (y2 - y1)) for share in np.linspace(0, 1, 200)]
    return any(box[0] < x < box[2] and box[1] < y < box[3] for x, y in along)
