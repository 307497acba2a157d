"""The pictures inside a page: small, and with the same look."""

import math
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bufferscope.report.slimming import TOLERANCE, simplified, slim

PLACE = st.tuples(st.floats(0, 800), st.floats(0, 300))


def distance(place: tuple[float, float], one: tuple[float, float], other: tuple[float, float]) -> float:
    """From a place to the line between two others."""
    dx, dy = other[0] - one[0], other[1] - one[1]
    along = ((place[0] - one[0]) * dx + (place[1] - one[1]) * dy) / ((dx * dx + dy * dy) or 1)
    along = min(max(along, 0), 1)
    return math.hypot(place[0] - one[0] - along * dx, place[1] - one[1] - along * dy)


@given(st.lists(PLACE, min_size=1, max_size=60))
def test_no_place_of_a_line_is_far_from_what_is_left(places: list[tuple[float, float]]) -> None:
    kept = simplified(places)
    assert (kept[0], kept[-1]) == (places[0], places[-1])
    parts = list(pairwise(kept)) or [(kept[0], kept[0])]
    assert all(min(distance(place, *part) for part in parts) <= TOLERANCE + 1e-6 for place in places)


def test_a_peak_stays() -> None:
    flat = "".join(f"L{x},100" for x in range(1, 400))
    svg = slim(f'<svg><path d="M0,100{flat}L400,3L401,100L800,100" stroke="#095aa6"/></svg>')
    assert svg == "<svg><path stroke='#095aa6' d='M0,100l399,0 1-97 1,97 399,0'/></svg>"


def test_circles_and_lines_of_one_style_are_one_path() -> None:
    circle = "M1.5,0A1.5,1.5,0,1,1,-1.5,0A1.5,1.5,0,1,1,1.5,0"
    dots = "".join(f'<path transform="translate({x}.04,7)" d="{circle}" fill="#f00"/>' for x in (1, 2, 3))
    ticks = "".join(f'<line transform="translate({x},0)" x2="0" y2="5" stroke="#888"/>' for x in (1, 2))
    assert slim(f"<svg>{dots}{ticks}</svg>") == (
        "<svg><path stroke='#f00' fill='none' stroke-linecap='round' stroke-width='3' d='M1 7h0M2 7h0M3 7h0'/>"
        "<path stroke='#888' d='M1 0l0 5M2 0l0 5'/></svg>"
    )


def test_boxes_above_one_another_still_darken_one_another() -> None:
    boxes = "".join(f'<path d="M{x},{y}h5v9h-5Z" fill="#555" opacity="0.3"/>' for x in (10, 0, 5) for y in (1, 4))
    paths = re.findall(r"d='([^']*)'", slim(f"<svg>{boxes}</svg>"))
    assert len(paths) == 2
    assert "fill-opacity='0.3'" in slim(f"<svg>{boxes}</svg>")
    assert sorted("".join(paths).split("M")[1:]) == sorted(f"{x},{y}h5v9h-5Z" for x in (0, 5, 10) for y in (1, 4))


def test_texts_inherit_the_font_that_most_have() -> None:
    texts = "<text font-family=\"a, 'b'\">x</text>" * 3 + '<text font-family="mono">y</text>'
    assert slim(f"<svg>{texts}</svg>") == (
        "<svg font-family='a, &apos;b&apos;'>" + "<text>x</text>" * 3 + "<text font-family='mono'>y</text></svg>"
    )


def test_words_that_are_not_seen_are_left_out_and_the_width_of_short_ones_is_not_fixed() -> None:
    fixed = 'textLength="14" lengthAdjust="spacingAndGlyphs"'
    texts = f'<text opacity="0" {fixed}>25</text><text fill="#111" {fixed}>30</text><text {fixed}>packets</text>'
    kept = fixed.replace('"', "'")
    assert slim(f"<svg>{texts}</svg>") == f"<svg><text fill='#111'>30</text><text {kept}>packets</text></svg>"
