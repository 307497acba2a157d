"""A check is made of a type, and its error says where a value is wrong, what was found, and what is expected there."""

import subprocess
import sys
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from msgspec import Meta

from bufferscope.base.bounded import Interval, Name, Positive, Whole, matching
from bufferscope.store.schema import DEEPEST, Check, Mismatch, Unchecked, plain
from bufferscope.store.typed import LONGEST_TEXT, MOST_ITEMS, Series, check_of


class Narrow(TypedDict):
    """What is relied on."""

    size: Whole


class Wide(TypedDict):
    """What our own program writes."""

    size: int
    colour: str


Digit = Annotated[str, matching("[0-9]", "a digit")]


class Part(TypedDict, total=False):
    """A part of a document."""

    kind: Literal["a", "b"]
    on: bool


class Document(TypedDict):
    """A type with each kind of value."""

    number: float
    parts: list[Part]
    named: dict[Digit, Positive]
    either: list[str] | Narrow
    ends: Interval
    name: NotRequired[Name | None]
    some: NotRequired[Annotated[list[Whole], Meta(min_length=1)]]
    wide: NotRequired[Annotated[Wide, Check(Narrow)]]
    free: NotRequired[Unchecked[int]]
    anything: NotRequired[object]


CHECK = Check(Document)
GOOD: dict[str, Any] = {
    "number": 1,
    "parts": [{"kind": "a", "more": 1}, {}],
    "named": {"1": 1, "2": 2},
    "either": {"size": 0},
    "ends": [None, 1.5],
    "name": None,
    "wide": {"size": 1},
    "free": "x",
    "anything": [{}],
    "unknown": 1,
}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"number": True}, "it.number: found True; expected a number"),
    ({"number": "1"}, "it.number: found '1'; expected a number"),
    ({"parts": {}}, "it.parts: found {}; expected a list"),
    ({"parts": [{}, None]}, "it.parts[1]: found None; expected a table"),
    ({"parts": [{"kind": "c"}]}, "it.parts[0].kind: found 'c'; expected one of a, b"),
    ({"parts": [{}, {"on": 1}]}, "it.parts[1].on: found 1; expected true or false"),
    ({"named": {"1": 1, "2": 0}}, "it.named.2: found 0; expected a whole number from 1 to 9223372036854775807"),
    ({"named": {"1": 2**63}}, f"it.named.1: found {2**63}; expected a whole number from 1 to 9223372036854775807"),
    ({"named": {"1": 1, "10": 1}}, "a key of it.named: found '10'; expected a digit"),
    ({"either": 1}, "it.either: found 1; expected a list or a table"),
    ({"either": ["x", 1]}, "it.either[1]: found 1; expected a string"),
    ({"either": {}}, "it.either.size: missing"),
    ({"either": {"size": -1}}, "it.either.size: found -1; expected a whole number from 0 to 9223372036854775807"),
    ({"ends": [1]}, "it.ends: found [1]; expected a list of at least 2 and at most 2"),
    ({"ends": [1, "x"]}, "it.ends[1]: found 'x'; expected a number"),
    ({"name": ".x"}, "it.name: found '.x'; expected a name of letters, digits, '.', '_' and '-'"),
    ({"name": 1}, "it.name: found 1; expected a name of letters, digits, '.', '_' and '-'"),
    ({"some": []}, "it.some: found []; expected a list of at least 1"),
    ({"wide": {"colour": "red"}}, "it.wide.size: missing"),
]

BEYOND_THE_SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"named": {"1": 1.0}}, "it.named.1: found 1.0; expected a whole number from 1 to 9223372036854775807"),
    ({"named": {"1\n": 1}}, "a key of it.named: found '1\\n'; expected a digit"),
]
"""In JSON Schema 1.0 is an integer; and this validator's `$` matches before a newline at the end."""


@pytest.mark.parametrize(
    ("change", "message"), WRONG + BEYOND_THE_SCHEMA, ids=[message for _, message in WRONG + BEYOND_THE_SCHEMA]
)
def test_the_error_says_where_what_was_found_and_what_is_expected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Mismatch) as error:
        CHECK(GOOD | change, "it")
    assert str(error.value) == message
    assert Draft202012Validator(CHECK.schema).is_valid(GOOD | change) == ((change, message) in BEYOND_THE_SCHEMA)


def test_what_the_type_allows_is_accepted() -> None:
    CHECK(GOOD, "it")
    assert Draft202012Validator(CHECK.schema).is_valid(GOOD)
    assert "free" not in CHECK.schema["properties"]


def test_a_wrong_value_at_the_top_has_no_path() -> None:
    for value, message in (([], ": found []; expected a table"), ({}, "size: missing")):
        with pytest.raises(Mismatch) as error:
            Check(Narrow)(value, "")
        assert str(error.value) == message


class Own(TypedDict):
    """A type without bounds of its own."""

    text: str
    count: int
    parts: list[int]
    series: NotRequired[Series]
    more: NotRequired[dict[str, object]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "x" * (LONGEST_TEXT + 1)}, f"one line of at most {LONGEST_TEXT} printable characters"),
        ({"text": "a\nb"}, r"it.text: found 'a\nb'; expected one line of printable characters"),
        ({"more": {"\x1b": 1}}, "a key of it.more"),
        (
            {"count": -(2**63)},
            "it.count: found -9223372036854775808; expected a whole number from -9223372036854775807",
        ),
        ({"parts": [0] * (MOST_ITEMS + 1)}, f"expected a list and at most {MOST_ITEMS}"),
    ],
)
def test_types_without_bounds_get_some(change: dict[str, Any], message: str) -> None:
    good = {"text": "x" * LONGEST_TEXT, "count": -1, "parts": [0] * MOST_ITEMS, "series": "1 " * LONGEST_TEXT}
    check = check_of(Own)
    check(good, "it")
    with pytest.raises(Mismatch) as error:
        check(good | change, "it")
    assert message in str(error.value)


def test_a_value_nested_too_deeply_is_refused() -> None:
    nested: object = 1
    for _ in range(DEEPEST):
        nested = [nested]
    plain(nested, "it")
    with pytest.raises(Mismatch, match="levels of nesting"):
        plain([nested], "it")


THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypedDict

from bufferscope.store.schema import Check

sys.setswitchinterval(1e-6)
together = Barrier(8)


def check(made, value):
    together.wait()
    made(value, "it")


with ThreadPoolExecutor(8) as threads:
    for number in range(30):
        kinds, values = {}, {}
        for depth in range(12):
            inner = TypedDict(f"Inner{number}x{depth}", {f"a{each}": int for each in range(8)} | kinds)
            values = {f"a{each}": each for each in range(8)} | values
            kinds, values = {f"b{depth}": inner}, {f"b{depth}": values}
        made = Check(TypedDict(f"Outer{number}", kinds))
        for done in [threads.submit(check, made, values) for _ in range(8)]:
            done.result()
"""


def test_threads_may_make_a_check_for_the_first_time_together() -> None:
    """Unless it is made ready before, msgspec crashes."""
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
