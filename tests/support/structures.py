"""Hold JSON against types: what it has that they don't declare, and what they declare that it lacks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


@dataclass
class Held:
    """The result: the differences in words, and the parts of the types that occurred."""

    differences: list[str] = field(default_factory=list)
    occurred: set[str] = field(default_factory=set)
    """Keys as `Port.rate`, and values of literals as `'pfifo'`."""

    def __iadd__(self, other: "Held") -> "Held":
        self.differences += other.differences
        self.occurred |= other.occurred
        return self


def hold(value: object, kind: Any, where: str = "", open_to_more: tuple[Any, ...] = ()) -> Held:
    """Hold a value against a type; tables of the types `open_to_more` may have keys that these don't declare."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return _table(value, kind, where, open_to_more)
    if origin in (Union, UnionType):
        return min(
            (hold(value, each, where, open_to_more) for each in arguments), key=lambda held: len(held.differences)
        )
    if origin is Literal:
        return Held(occurred={repr(value)}) if value in arguments else _another(value, kind, where)
    result = Held()
    if origin is list and isinstance(value, list):
        for index, item in enumerate(value):
            result += hold(item, arguments[0], f"{where}[{index}]", open_to_more)
    elif origin in (dict, Mapping) and isinstance(value, dict):
        for key, item in value.items():
            result += hold(item, arguments[1], f"{where}.{key}", open_to_more)
    elif type(value) not in ((int, float) if kind is float else (NoneType if kind is None else kind,)):
        return _another(value, kind, where)
    return result


def declared(kind: Any) -> set[str]:
    """Everything in a type that can occur, as in `Held.occurred`."""
    return set(_declared(kind, set()))


def _declared(kind: Any, tables: set[Any]) -> Iterator[str]:
    """The same, but of no table in `tables`: a table may contain others of its own type."""
    if is_typeddict(kind):
        if kind in tables:
            return
        tables.add(kind)
        for key, inner in _hints(kind).items():
            yield f"{kind.__name__}.{key}"
            yield from _declared(inner, tables)
    elif get_origin(kind) is Literal:
        yield from map(repr, get_args(kind))
    else:
        for inner in get_args(kind):
            yield from _declared(inner, tables)


def _table(value: object, kind: Any, where: str, open_to_more: tuple[Any, ...]) -> Held:
    if not isinstance(value, dict):
        return _another(value, kind, where)
    hints = _hints(kind)
    result = Held([f"{where}.{key}: missing" for key in sorted(kind.__required_keys__ - value.keys())])
    for key, item in value.items():
        if key in hints:
            result.occurred.add(f"{kind.__name__}.{key}")
            result += hold(item, hints[key], f"{where}.{key}", open_to_more)
        elif kind not in open_to_more:
            result.differences.append(f"{where}.{key}: not declared")
    return result


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _another(value: object, kind: Any, where: str) -> Held:
    return Held([f"{where}: found {value!r:.60}, declared {kind}"])
