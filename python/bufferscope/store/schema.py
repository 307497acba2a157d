"""Checks of values from a file of unknown origin before anything relies on them: of their types, and of their contents.

A check is made from a type, so that the shape of a document is written down once: in a `TypedDict`, with the bounds of
`base.bounded`. msgspec compares the values with it; this module says where a wrong value is, and what is expected
there. Keys that a type does not have are allowed.

Each check also has its JSON Schema, from the same type. The schema says as much as JSON Schema can: what it accepts may
still be refused, because of nesting, characters, or values that do not fit each other.
"""

import re
import reprlib
import types
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, cached_property
from threading import RLock
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import Meta

from bufferscope.base.bounded import NO_NEWLINE

Schema = Mapping[str, object]
"""A JSON Schema, draft 2020-12."""

DEEPEST = 40
"""The most levels of nesting that are allowed; a run's metadata has 8."""
LIMIT = 2.0**64
"""Numbers are smaller than this."""

T = TypeVar("T")
Unchecked = Annotated[T, "unchecked"]
"""A key that is neither checked nor part of the schema: nothing relies on it."""


class Mismatch(ValueError):
    """A wrong value; the text says where it is, what was found and what is expected."""

    def __init__(self, where: str, value: object, expected: str) -> None:
        """Make the error's text."""
        super().__init__(f"{where}: found {reprlib.repr(value)}; expected {expected}")


class MissingKey(Mismatch):
    """A key is missing."""

    def __init__(self, where: str) -> None:
        """Name the key."""
        ValueError.__init__(self, f"{where}: missing")


_preparing = RLock()


class Check:
    """The check of the values of a type.

    `Annotated[Scenario, Check(RequiredScenario)]`, as the type of a key, says that this check is made of its values.
    """

    def __init__(self, kind: Any, rewrite: Callable[[Any], Any] = lambda part: part, *, lines: bool = False) -> None:
        """Take the type; `rewrite` bounds the types of its parts that have no bounds of their own.

        With `lines`, all texts must be single lines.
        """
        self._given, self._rewrite, self._lines = kind, rewrite, lines

    @cached_property
    def kind(self) -> Any:
        """The type as msgspec takes it, made ready: it crashes if two threads use a new type at the same time."""
        with _preparing:
            kind = _checked_form(self._given, self._rewrite)
            with suppress(msgspec.ValidationError):
                msgspec.convert(None, kind)
            return kind

    def __call__(self, value: object, where: str) -> None:
        """Raise `Mismatch` if a value is wrong; `where` is its path in the file."""
        try:
            msgspec.convert(value, self.kind)
        except msgspec.ValidationError as error:
            raise _mismatch(str(error), value, self.kind, where) from None
        if self._lines:
            plain(value, where, lines=True)

    @property
    def schema(self) -> dict[str, Any]:
        """What the check allows, as a JSON Schema."""
        schema = msgspec.json.schema(self.kind, schema_hook=lambda _: _ANYTHING)
        inlined: dict[str, Any] = _inlined(schema, schema.get("$defs", {}))
        return inlined


_ANYTHING = {"description": "any value"}
_NOT_CHECKED = ("title", "description", "$defs", "properties")


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with its definitions where they are referred to, without what is only for people."""
    if isinstance(node, list):
        return [_inlined(each, definitions) for each in node]
    if isinstance(node, str):
        return node.removesuffix(NO_NEWLINE)
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
    found = {key: _inlined(each, definitions) for key, each in node.items() if key not in _NOT_CHECKED}
    if "properties" in node:  # whose keys may have any name
        found["properties"] = {key: _inlined(each, definitions) for key, each in node["properties"].items()}
    return found


def _checked_form(kind: Any, rewrite: Callable[[Any], Any]) -> Any:
    """A type whose parts are as msgspec takes them: without what is unchecked, and with bounds."""
    if is_typeddict(kind):
        return _checked_table(kind, rewrite)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        inner, *more = arguments
        for each in more:
            if isinstance(each, Check):
                return each.kind
        bounded = [each for each in more if isinstance(each, Meta)]
        # Only what is inside of a bounded list or table needs bounds.
        parts = tuple(_checked_form(each, rewrite) for each in get_args(inner))
        return Annotated[(get_origin(inner)[parts] if parts else inner, *bounded)]
    if origin in (Union, types.UnionType):
        return Union[tuple(_checked_form(each, rewrite) for each in arguments)]  # noqa: UP007
    if origin is None or origin is Literal:
        return rewrite(kind)
    return rewrite(origin[tuple(_checked_form(each, rewrite) for each in arguments)])


@cache
def _checked_table(kind: Any, rewrite: Callable[[Any], Any]) -> Any:
    fields = {}
    for key, each in get_type_hints(kind, include_extras=True).items():
        bare = get_args(each)[0] if get_origin(each) in (Required, NotRequired) else each
        if get_origin(bare) is Annotated and "unchecked" in get_args(bare)[1:]:
            continue
        inner = _checked_form(bare, rewrite)
        fields[key] = Required[inner] if key in kind.__required_keys__ else NotRequired[inner]
    return TypedDict(f"{kind.__module__}.{kind.__name__}", fields)  # type: ignore[operator]


_AT = re.compile(r" - at `(?P<key>key` in `)?\$(?P<path>[^`]*)`$")
"""Where msgspec found a wrong value: as in $.links[0].rate, with [...] for any key of a table of unknown keys."""
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>[^\]]+)\]")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")


def _mismatch(message: str, value: Any, kind: Any, where: str) -> Mismatch:
    """The error for a value that msgspec refused with this message."""
    at = _AT.search(message)
    for step in _STEP.finditer(at["path"] if at else ""):
        bare = _fitting(value, kind)
        if step["name"]:
            key: Any = step["name"]
            kind = get_type_hints(bare, include_extras=True)[key]
        elif step["index"] == "...":
            kind = get_args(bare)[1]
            key = next(name for name, inner in value.items() if not _is_of(inner, kind))
        else:
            kind, key = get_args(bare)[0], int(step["index"])
        where = f"{where}[{key}]" if isinstance(key, int) else _below(where, key)
        value = value[key]
    if missing := _MISSING.match(message):
        return MissingKey(_below(where, missing[1]))
    if at and at["key"]:
        names = get_args(_fitting(value, kind))[0]
        wrong = next(name for name in value if not _is_of(name, names))
        return Mismatch(f"a key of {where}", wrong, _expected(names))
    return Mismatch(where, value, _expected(kind))


def _is_of(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _bare(kind: Any) -> tuple[Any, tuple[Meta, ...]]:
    """A type without what is around it, and its bounds."""
    bounds: tuple[Meta, ...] = ()
    while (origin := get_origin(kind)) in (Annotated, Required, NotRequired):
        if origin is Annotated:
            bounds += tuple(each for each in kind.__metadata__ if isinstance(each, Meta))
        kind = get_args(kind)[0]
    return kind, bounds


def _members(kind: Any) -> tuple[Any, ...]:
    """The types of a union except that of None; otherwise the type itself."""
    bare, _ = _bare(kind)
    if get_origin(bare) not in (Union, types.UnionType):
        return (kind,)
    return tuple(each for each in get_args(bare) if each is not type(None))


def _fitting(value: object, kind: Any) -> Any:
    """The type inside of `kind` that describes a list or a table."""
    return next(
        bare
        for bare, _ in map(_bare, _members(kind))
        if (get_origin(bare) is list) == isinstance(value, list) and (get_args(bare) or is_typeddict(bare))
    )


def _expected(kind: Any) -> str:
    """The values of a type in words."""
    if len(members := _members(kind)) > 1:
        return " or ".join(map(_expected, members))
    bare, bounds = _bare(members[0])
    for each in bounds:
        if each.extra:
            return str(each.extra["expected"])
    if get_origin(bare) is Literal:
        return f"one of {', '.join(map(str, get_args(bare)))}"
    if bare is int:
        (bound,) = bounds
        return f"a whole number from {bound.ge} to {bound.le}"
    if get_origin(bare) is list:
        least = next((each.min_length for each in bounds if each.min_length), 0)
        most = next((each.max_length for each in bounds if each.max_length is not None), None)
        return "a list" + (f" of at least {least}" if least else "") + (f" and at most {most}" if most else "")
    return {str: "a string", float: "a number", bool: "true or false"}.get(bare, "a table")


_passed: ContextVar[set[int] | None] = ContextVar("passed", default=None)
"""The tables and lists that have passed `plain`, by their identity."""


@contextmanager
def remembering() -> Iterator[None]:
    """Within the block, `plain` checks no table or list twice, which several values may have in common.

    Whatever is checked within the block must not be changed, and must not be freed before its end.
    """
    token = _passed.set(set())
    try:
        yield
    finally:
        _passed.reset(token)


def plain(value: object, where: str, *, lines: bool = False) -> None:
    """Check that a JSON value is not nested deeply, and that its numbers are finite and its texts can be displayed.

    With `lines`, texts must be single lines of printable characters. Raises `Mismatch`.
    """
    if not _is_plain(value, lines):
        _find_mismatch(value, where, lines)


def _is_plain(value: Any, lines: bool) -> bool:
    """Whether a value is plain; level by level, without the paths of its parts, which only an error needs."""
    passed = None if lines else _passed.get()
    level: list[Any] = [value]
    texts: set[str] = set()
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is str:
                texts.add(each)
            elif kind is dict or kind is list:
                if passed is not None:
                    if (mark := id(each)) in passed:
                        continue
                    passed.add(mark)
                if kind is dict:
                    texts.update(each)
                inner += each.values() if kind is dict else each
            elif kind in (int, float) and not -LIMIT < each < LIMIT:
                return False
        if not inner:
            return all(map(str.isprintable, texts)) or not (lines or any(map(_unsafe, texts)))
        level = inner
    return False


def _find_mismatch(value: object, where: str, lines: bool, depth: int = 0) -> None:
    """Raise `Mismatch` for the first part of a value that is not plain."""
    if depth > DEEPEST:
        raise Mismatch(where, "...", f"at most {DEEPEST} levels of nesting")
    if isinstance(value, str):
        _check_characters(value, where, lines)
    elif isinstance(value, int | float):
        if not -LIMIT < value < LIMIT:  # NaN is not, either
            raise Mismatch(where, value, "a number of at most 64 bits")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_characters(key, f"a key of {where}" if where else "a key", lines)
            _find_mismatch(inner, _below(where, key), lines, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _find_mismatch(inner, f"{where}[{index}]", lines, depth + 1)


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _check_characters(found: str, where: str, lines: bool) -> None:
    """Refuse control characters, which a terminal would act on, and lone surrogates, which no encoding can store."""
    if lines and not found.isprintable():
        raise Mismatch(where, found, "one line of printable characters")
    if character := _unsafe(found):
        raise Mismatch(where, found, f"a string without the character U+{ord(character):04X}")


def _unsafe(found: str) -> str:
    """The first character of a string that is refused; empty if all are allowed."""
    if found.isprintable():
        return ""
    return next((each for each in found if unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\r\t"), "")
