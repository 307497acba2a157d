"""Checks made from types, for documents whose shape is written down as `TypedDict`s.

A key that is not required may be missing; keys that a type does not have are allowed. Strings are single lines of
printable characters, integers have 64 bits, and lists are bounded.
"""

import types
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from bufferscope.store.schema import (
    LARGEST,
    Mismatch,
    SchemaCheck,
    flag,
    items,
    mapping,
    number,
    optional,
    plain,
    table,
    whole,
)

LONGEST_TEXT = 4000
"""The most characters of a string."""
MOST_ITEMS = 10_000
"""The most items of a list, unless its type says more."""

LONGEST_SERIES = 4 << 20
"""The most characters of a string that is a series of values."""

Count = Annotated[int, "count"]
"""An integer from 0 on."""
Series = Annotated[str, "series"]
"""A string that is a series of values, and may be long."""


def _line(longest: int) -> SchemaCheck:
    """A string of one line."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or len(value) > longest or not value.isprintable():
            raise Mismatch(where, value, f"one line of at most {longest} printable characters")

    return SchemaCheck(check, {"type": "string", "maxLength": longest})


line = _line(LONGEST_TEXT)
"""A string of one line."""


def check_of(kind: Any) -> SchemaCheck:
    """The check of values of a type: a `TypedDict`, a list, a dict, an optional, a literal or a plain value."""
    if is_typeddict(kind):
        return _table(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Required, NotRequired):
        return check_of(arguments[0])
    if origin is Annotated:
        meaning = arguments[1]
        return (
            _MARKED[meaning] if isinstance(meaning, str) else items(check_of(get_args(arguments[0])[0]), most=meaning)
        )
    if origin in (Union, types.UnionType):
        (inner,) = (each for each in arguments if each is not type(None))
        return optional(check_of(inner))
    if origin is list:
        return items(check_of(arguments[0]), most=MOST_ITEMS)
    if origin is dict:
        return mapping(check_of(arguments[1]), line)
    if origin is Literal:
        return _words(arguments)
    return _PLAIN[kind]


_PLAIN: dict[Any, SchemaCheck] = {
    str: line,
    int: whole(-LARGEST),
    float: number,
    bool: flag,
    object: plain,
}
_MARKED: dict[str, SchemaCheck] = {"count": whole(), "series": _line(LONGEST_SERIES)}


def _table(kind: Any) -> SchemaCheck:
    checks = {key: check_of(each) for key, each in get_type_hints(kind, include_extras=True).items()}
    needed = kind.__required_keys__
    return table(
        {key: check for key, check in checks.items() if key in needed},
        {key: check for key, check in checks.items() if key not in needed},
    )


def _words(allowed: tuple[object, ...]) -> SchemaCheck:
    def check(value: object, where: str) -> None:
        if value not in allowed or isinstance(value, bool):
            raise Mismatch(where, value, f"one of {', '.join(map(str, allowed))}")

    return SchemaCheck(check, {"enum": list(allowed)})
