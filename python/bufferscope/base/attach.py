"""What a higher layer adds to the objects of a lower one: charts to a run, a page to a result.

The package's `__init__`, above all layers, registers where each addition is; the lower layer calls it by its name. So
no layer imports one above it, and what an addition needs is loaded when it is first used.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bufferscope.base.lazy import Function

_HOMES: dict[str, str] = {}


def register(homes: Mapping[str, str]) -> None:
    """Make additions known: each name with its function, as in `"bufferscope.report:build"`."""
    _HOMES.update(homes)


def attached(name: str) -> Callable[..., Any]:
    """The function of this name.

    Raises `KeyError` if it was not registered.
    """
    return Function(_HOMES[name]).found
