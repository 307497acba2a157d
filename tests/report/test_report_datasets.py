"""The data of a page's charts: short, as exact as a screen, and without numbers that JSON does not have."""

import json
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bufferscope.base import strict_json
from bufferscope.report.datasets import divided, packed, rounded

VALUES = st.none() | st.booleans() | st.text(max_size=3) | st.integers(-(2**53), 2**53) | st.floats()


def unpacked(table: dict[str, Any]) -> list[dict[str, Any]]:
    """What `page.js` makes of packed data."""
    found: list[dict[str, Any]] = [{} for _ in range(table["rows"])]
    for name, column in table["columns"].items():
        for row, value in zip(found, _values(column), strict=True):
            row[name] = value
    return found


def _values(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    if "steps" in column:
        total, values = 0, []
        for step in column["steps"]:
            total += step
            values.append(total / column["unit"])
        return values
    numbers = iter(column["runs"])
    return [column["words"][word] for word, count in zip(numbers, numbers, strict=True) for _ in range(count)]


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and not math.isfinite(one):
        return other is None
    if isinstance(one, int | float) and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=6e-4)
    return bool(one == other)


@given(st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES}), min_size=1))
def test_every_row_comes_back_as_it_was_to_four_digits(rows: list[dict[str, Any]]) -> None:
    back = unpacked(json.loads(strict_json.dumps(packed(rows)), parse_constant=pytest.fail))
    assert all(alike(row[name], other[name]) for row, other in zip(rows, back, strict=True) for name in row)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2))
def test_values_that_a_screen_tells_apart_stay_apart(values: list[float]) -> None:
    short = rounded(values)
    pixel = (max(values) - min(values)) / 1000
    assume(pixel > 0)
    assert all(abs(one - other) <= pixel for one, other in zip(values, short, strict=True))


def test_a_series_takes_some_characters_a_sample() -> None:
    rows = [{"time_s": 1000 + t / 20, "point": "codel", "rtt_ms": 10.123456 + t % 7} for t in range(1000)]
    assert len(strict_json.dumps(packed(rows))) < 9 * len(rows) < len(json.dumps(rows)) / 5


def test_a_specification_names_its_data() -> None:
    spec = {"layer": [{"data": {"name": "d"}}], "datasets": {"d": [{"y": float("nan")}, {"y": 1.0}]}}
    rest, data = divided(spec)
    assert rest == {"layer": [{"data": {"name": "d"}}]}
    assert data == {"d": '{"rows":2,"columns":{"y":[null,1]}}'}


@given(st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner), max_leaves=8))
def test_whatever_is_written_can_be_read_by_any_parser(value: object) -> None:
    text = strict_json.dumps(value)
    assert json.loads(text, parse_constant=pytest.fail) == json.loads(json.dumps(strict_json.finite(value)))
