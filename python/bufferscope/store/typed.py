"""Checks of documents whose types have no bounds of their own: each part gets bounds.

Strings are single lines of printable characters, integers have 64 bits, and lists are bounded.
"""

from typing import Annotated, Any, get_origin

from msgspec import Meta

from bufferscope.base.bounded import LARGEST, Whole
from bufferscope.store.schema import Check

LONGEST_TEXT = 4000
"""The most characters of a string."""
MOST_ITEMS = 10_000
"""The most items of a list, unless its type says more."""
LONGEST_SERIES = 4 << 20
"""The most characters of a string that is a series of values."""


def _line(longest: int) -> Meta:
    return Meta(max_length=longest, extra={"expected": f"one line of at most {longest} printable characters"})


Count = Whole
"""An integer from 0 on."""
Series = Annotated[str, _line(LONGEST_SERIES)]
"""A string that is a series of values, and may be long."""
_BOUNDED: dict[Any, Any] = {
    str: Annotated[str, _line(LONGEST_TEXT)],
    int: Annotated[int, Meta(ge=-LARGEST, le=LARGEST)],
}


def check_of(kind: Any) -> Check:
    """The check of values of a type: a `TypedDict`, a list, a dict, an optional, a literal or a plain value."""
    return Check(kind, _bounded, lines=True)


def _bounded(kind: Any) -> Any:
    return Annotated[kind, Meta(max_length=MOST_ITEMS)] if get_origin(kind) is list else _BOUNDED.get(kind, kind)
