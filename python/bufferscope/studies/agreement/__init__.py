"""Compare two engines on the same scenario: how far apart they are, whether by chance, and whether close enough.

>>> from bufferscope.studies import agreement
>>> result = bs.run("ucas-reproduce", engine=["sim", "guest"], repeat=3)                       # doctest: +SKIP
>>> for comparison in agreement.compare(result).points[0].comparisons:                         # doctest: +SKIP
...     print(comparison.metric, comparison.relative, comparison.within_spread, comparison.meets_aim)
"""

from typing import TYPE_CHECKING

from bufferscope.base import lazy

if TYPE_CHECKING:
    from bufferscope.studies.agreement.comparing import Agreement, Comparison, PointAgreement, compare
    from bufferscope.studies.agreement.tolerances import AIMS, Aim

__all__ = ["AIMS", "Agreement", "Aim", "Comparison", "PointAgreement", "compare"]

_HOMES = {
    "AIMS": "tolerances",
    "Agreement": "comparing",
    "Aim": "tolerances",
    "Comparison": "comparing",
    "PointAgreement": "comparing",
    "compare": "comparing",
}

__getattr__ = lazy.names(__name__, _HOMES)
