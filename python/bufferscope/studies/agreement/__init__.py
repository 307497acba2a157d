"""Compare two engines on the same scenario: how far apart they are, whether by chance, and whether close enough.

>>> from bufferscope.studies import agreement
>>> result = bs.run("ucas-reproduce", engine=["sim", "guest"], repeat=3)                       # doctest: +SKIP
>>> for comparison in agreement.compare(result).points[0].comparisons:                         # doctest: +SKIP
...     print(comparison.metric, comparison.relative, comparison.within_spread, comparison.within_tolerance)
"""

from typing import TYPE_CHECKING

from bufferscope.base import lazy

if TYPE_CHECKING:
    from bufferscope.studies.agreement.comparing import Agreement, MetricComparison, PointAgreement, compare
    from bufferscope.studies.agreement.tolerances import TOLERANCES, Tolerance

__all__ = ["TOLERANCES", "Agreement", "MetricComparison", "PointAgreement", "Tolerance", "compare"]

_HOMES = {
    "TOLERANCES": "tolerances",
    "Agreement": "comparing",
    "Tolerance": "tolerances",
    "MetricComparison": "comparing",
    "PointAgreement": "comparing",
    "compare": "comparing",
}

__getattr__ = lazy.names(__name__, _HOMES)
