"""Compare runs, in whatever they differ: what changed, by how much, and whether chance explains it.

>>> compared = bs.compare("results/ucas-reproduce")                                             # doctest: +SKIP
>>> compared.table                       # one row a metric and difference                      # doctest: +SKIP
>>> compared.figures["rtt"]              # all of them in one chart                             # doctest: +SKIP
>>> compared.report("comparison")        # the page                                             # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from bufferscope.base import lazy

if TYPE_CHECKING:
    from bufferscope.studies.comparison.arms import Arm
    from bufferscope.studies.comparison.comparing import Comparison, PointComparison
    from bufferscope.studies.comparison.inputs import Input

__all__ = ["Arm", "Comparison", "Input", "PointComparison"]

_HOMES = {"Comparison": "comparing", "Input": "inputs", "PointComparison": "comparing", "Arm": "arms"}

__getattr__ = lazy.names(__name__, _HOMES)
