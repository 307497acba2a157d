"""Compare runs, in whatever they differ: what changed, by how much, and whether chance explains it.

>>> compared = bs.compare("results/ucas-reproduce")                                             # doctest: +SKIP
>>> compared.table                       # one row a metric and difference                      # doctest: +SKIP
>>> compared.figures["rtt"]              # all of them in one chart                             # doctest: +SKIP
>>> compared.report("comparison")        # the page                                             # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from bufferscope import lazy

if TYPE_CHECKING:
    from bufferscope.comparison.comparing import Comparison, PointComparison
    from bufferscope.comparison.inputs import Input
    from bufferscope.comparison.sides import Side

__all__ = ["Comparison", "Input", "PointComparison", "Side"]

_HOMES = {"Comparison": "comparing", "Input": "inputs", "PointComparison": "comparing", "Side": "sides"}

__getattr__ = lazy.names(__name__, _HOMES)
