"""JSON that every parser accepts. JSON has no NaN and no infinity (RFC 8259, section 6), so these become null."""

import json
import math
from typing import Any


def finite(value: Any) -> Any:
    """The value with None for every number in it, at any depth, that is not finite; values without one stay the same.

    >>> finite({"rtt_ms": [1.5, float("nan")], "lost": float("inf")})
    {'rtt_ms': [1.5, None], 'lost': None}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def dumps(value: Any) -> str:
    """Compact JSON, in which numbers that are not finite are null. Characters outside ASCII are not escaped."""
    try:
        return _encode(value)
    except ValueError:  # a number is not finite
        return _encode(finite(value))


_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
