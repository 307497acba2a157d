"""Runs held against one another, whatever they differ in: what changed, by how much, and whether chance explains it.

>>> compared = bs.compare("results/ucas-reproduce")                                             # doctest: +SKIP
>>> compared.table                       # one row a metric and difference                      # doctest: +SKIP
>>> compared.figures["rtt"]              # all of them in one chart                             # doctest: +SKIP
>>> compared.report("comparison")        # the page                                             # doctest: +SKIP
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bufferscope.comparison.comparing import Comparison, PointComparison
    from bufferscope.comparison.inputs import Input
    from bufferscope.comparison.sides import Side

__all__ = ["Comparison", "Input", "PointComparison", "Side"]

_HOMES = {"Comparison": "comparing", "Input": "inputs", "PointComparison": "comparing", "Side": "sides"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
