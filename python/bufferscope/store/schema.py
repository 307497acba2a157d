"""Small checks, which can be combined, of values from a JSON file of unknown origin before anything relies on them.

Each check also has its JSON Schema, so a format is written down once. The schema says as much as JSON Schema can:
what it accepts may still be refused, because of nesting, characters, or values that do not fit each other.
"""

import re
import reprlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, object]
"""A JSON Schema, draft 2020-12."""


@dataclass(frozen=True)
class SchemaCheck:
    """A check, and what it allows as a JSON Schema."""

    check: Callable[[object, str], None]
    """Takes a value and its path in the file; raises `Mismatch` if the value is wrong."""
    schema: Schema

    def __call__(self, value: object, where: str) -> None:
        """Check a value."""
        self.check(value, where)


def shaped(schema: Schema) -> Callable[[Callable[[object, str], None]], SchemaCheck]:
    """Make a check of a function, with the schema of what it allows."""
    return lambda check: SchemaCheck(check, schema)


DEEPEST = 40
"""The most levels of nesting that are allowed; a run's metadata has 8."""
LARGEST = 2**63 - 1
"""The largest integer of the records."""
LIMIT = 2.0**64
"""Numbers are smaller than this."""


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


_passed: ContextVar[set[tuple[int, int]] | None] = ContextVar("passed", default=None)
"""The tables and lists that have passed a check, by their identity and that of the check."""


@contextmanager
def remembering() -> Iterator[None]:
    """Within the block, no check is made twice of the same table or list, which several values may have in common.

    Whatever is checked within the block must not be changed, and must not be freed before its end.
    """
    token = _passed.set(set())
    try:
        yield
    finally:
        _passed.reset(token)


def _once(check: Callable[[object, str], None], value: object, where: str) -> None:
    """Check a table or a list, unless it has passed before within `remembering`."""
    passed = _passed.get()
    mark = id(check), id(value)
    if passed is None:
        check(value, where)
    elif mark not in passed:
        check(value, where)
        passed.add(mark)


def _plain(value: object, where: str) -> None:
    """Any JSON value without deep nesting, with finite numbers and with texts that can be displayed and stored."""
    if not _is_plain(value):
        _find_mismatch(value, where)


def _is_plain(value: Any) -> bool:
    """Whether a value is plain; level by level, without the paths of its parts, which only an error needs."""
    passed = _passed.get()
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
                    if (mark := (0, id(each))) in passed:
                        continue
                    passed.add(mark)
                if kind is dict:
                    texts.update(each)
                inner += each.values() if kind is dict else each
            elif kind in (int, float) and not -LIMIT < each < LIMIT:
                return False
        if not inner:
            return all(map(str.isprintable, texts)) or not any(map(_unsafe, texts))
        level = inner
    return False


def _find_mismatch(value: object, where: str, depth: int = 0) -> None:
    """Raise `Mismatch` for the first part of a value that is not plain."""
    if depth > DEEPEST:
        raise Mismatch(where, "...", f"at most {DEEPEST} levels of nesting")
    if isinstance(value, str):
        _check_characters(value, where)
    elif isinstance(value, int | float):
        if not -LIMIT < value < LIMIT:  # NaN is not, either
            raise Mismatch(where, value, "a number of at most 64 bits")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_characters(key, f"a key of {where}" if where else "a key")
            _find_mismatch(inner, _below(where, key), depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _find_mismatch(inner, f"{where}[{index}]", depth + 1)


plain = SchemaCheck(_plain, {})
"""Any JSON value without deep nesting, with finite numbers and with texts that can be displayed and stored."""


@shaped({"type": "string"})
def text(value: object, where: str) -> None:
    """Any string."""
    if not isinstance(value, str):
        raise Mismatch(where, value, "a string")


@shaped({"type": "number"})
def number(value: object, where: str) -> None:
    """A number, not a boolean."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Mismatch(where, value, "a number")


@shaped({"type": "boolean"})
def flag(value: object, where: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise Mismatch(where, value, "true or false")


def whole(low: int = 0, high: int = LARGEST) -> SchemaCheck:
    """A whole number from `low` to `high`."""

    def check(value: object, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Mismatch(where, value, f"a whole number from {low} to {high}")

    return SchemaCheck(check, {"type": "integer", "minimum": low, "maximum": high})


def matching(pattern: str, expected: str) -> SchemaCheck:
    """A string that the regular expression matches completely."""
    compiled = re.compile(pattern)

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise Mismatch(where, value, expected)

    return SchemaCheck(check, {"type": "string", "pattern": f"^(?:{pattern})$"})


def optional(check: SchemaCheck) -> SchemaCheck:
    """Null, or a value that `check` accepts."""
    inner = check.check
    schema = {"anyOf": [{"type": "null"}, check.schema]}
    return SchemaCheck(lambda value, where: None if value is None else inner(value, where), schema)


def items(check: SchemaCheck, least: int = 0, most: int | None = None) -> SchemaCheck:
    """A list of `least` to `most` values that `check` accepts."""
    check_item = check.check

    def check_list(value: object, where: str) -> None:
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            size = "a list" + (f" of at least {least}" if least else "") + (f" and at most {most}" if most else "")
            raise Mismatch(where, value, size)
        for index, inner in enumerate(value):
            check_item(inner, f"{where}[{index}]")

    def check_once(value: object, where: str) -> None:
        _once(check_list, value, where)

    bounds = {"minItems": least} | ({} if most is None else {"maxItems": most})
    return SchemaCheck(check_once, {"type": "array", "items": check.schema, **bounds})


def mapping(check: SchemaCheck, key: SchemaCheck = text) -> SchemaCheck:
    """A table whose keys all pass one check and whose values all pass another."""
    check_key, check_value = key.check, check.check

    def check_mapping(value: object, where: str) -> None:
        for name, inner in _table(value, where).items():
            check_key(name, f"a key of {where}")
            check_value(inner, _below(where, name))

    def check_once(value: object, where: str) -> None:
        _once(check_mapping, value, where)

    names = {} if key is text else {"propertyNames": key.schema}
    return SchemaCheck(check_once, {"type": "object", "additionalProperties": check.schema, **names})


def table(required: Mapping[str, SchemaCheck], optional: Mapping[str, SchemaCheck] | None = None) -> SchemaCheck:
    """A table with these keys; other keys are allowed."""
    needed = {key: check.check for key, check in required.items()}
    possible = {key: check.check for key, check in (optional or {}).items()}

    def check_table(value: object, where: str) -> None:
        found = _table(value, where)
        for key, check in needed.items():
            if key not in found:
                raise MissingKey(_below(where, key))
            check(found[key], _below(where, key))
        for key, check in possible.items():
            if key in found:
                check(found[key], _below(where, key))

    def check_once(value: object, where: str) -> None:
        _once(check_table, value, where)

    properties = {key: check.schema for key, check in {**required, **(optional or {})}.items()}
    return SchemaCheck(check_once, {"type": "object", "properties": properties, "required": list(required)})


def _table(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Mismatch(where, value, "a table")
    return value


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _check_characters(found: str, where: str) -> None:
    """Refuse control characters, which a terminal would act on, and lone surrogates, which no encoding can store."""
    if character := _unsafe(found):
        raise Mismatch(where, found, f"a string without the character U+{ord(character):04X}")


def _unsafe(found: str) -> str:
    """The first character of a string that is refused; empty if all are allowed."""
    if found.isprintable():
        return ""
    return next((each for each in found if unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\r\t"), "")
