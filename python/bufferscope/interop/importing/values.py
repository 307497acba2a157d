"""Values of unknown origin as numbers, times and tables."""

import math
from collections.abc import Iterator, Mapping, Sequence

from bufferscope.interop.importing.content import Unusable

NANOSECONDS = 1_000_000_000
LONGEST_NS = 400 * 86400 * NANOSECONDS
"""More than a year: a longer test is not one."""
LATEST_S = 4e9
"""A number beyond it (the year 2096) is not a timestamp."""
LARGEST = 2**53
"""Beyond it, JSON's numbers are no longer exact."""


def number(value: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
        return None
    return float(value) if math.isfinite(value) else None


def whole(value: object) -> int | None:
    """A whole number from 0 on; None for anything else."""
    found = number(value)
    return int(found) if found is not None and found >= 0 else None


def nanoseconds(seconds: object) -> int | None:
    """A time or a duration in seconds, from 0 on; None for anything else."""
    found = number(seconds)
    return round(found * NANOSECONDS) if found is not None and 0 <= found <= LATEST_S else None


def milliseconds(value: object) -> int | None:
    """A duration in milliseconds as nanoseconds; None for anything else, or if it is longer than any test."""
    found = number(value)
    return round(found * 1e6) if found is not None and 0 <= found * 1e6 <= LONGEST_NS else None


def mapping(value: object, where: str) -> Mapping[str, object]:
    """A JSON object; raises `Unusable`."""
    if not isinstance(value, dict):
        raise Unusable(f"{where}: found {kind(value)}; expected an object")
    return value


def sequence(value: object, where: str) -> Sequence[object]:
    """A JSON list; raises `Unusable`."""
    if not isinstance(value, list):
        raise Unusable(f"{where}: found {kind(value)}; expected a list")
    return value


def mappings(value: object, where: str) -> Iterator[Mapping[str, object]]:
    """A JSON list of objects; raises `Unusable`."""
    for index, each in enumerate(sequence(value, where)):
        yield mapping(each, f"{where}[{index}]")


def text(value: object, default: str = "") -> str:
    """A string; the default for anything else."""
    return value if isinstance(value, str) else default


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
