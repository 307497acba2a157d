"""Compare two engines on the same scenario: how far apart they are, whether by chance, and whether close enough.

>>> from bufferscope import agreement
>>> result = bs.run("ucas-reproduce", engine="sim,guest", repeat=3)                            # doctest: +SKIP
>>> for comparison in agreement.compare(result).points[0].comparisons:                         # doctest: +SKIP
...     print(comparison.metric, comparison.relative, comparison.within_spread, comparison.meets_aim)
"""

from typing import TYPE_CHECKING

from bufferscope import lazy

if TYPE_CHECKING:
    from bufferscope.agreement.aims import AIMS, Aim
    from bufferscope.agreement.comparing import Agreement, Comparison, PointAgreement, compare
    from bufferscope.agreement.page import build

__all__ = ["AIMS", "Agreement", "Aim", "Comparison", "PointAgreement", "build", "compare"]

_HOMES = {
    "AIMS": "aims",
    "Agreement": "comparing",
    "Aim": "aims",
    "Comparison": "comparing",
    "PointAgreement": "comparing",
    "build": "page",
    "compare": "comparing",
}

__getattr__ = lazy.names(__name__, _HOMES)
