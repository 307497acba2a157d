"""Two engines on the same scenario: how far apart they are, whether that is chance, and whether it is near enough.

>>> from bufferscope import agreement
>>> result = bs.run("ucas-reproduce", engine="sim,guest", repeat=3)                            # doctest: +SKIP
>>> for comparison in agreement.compare(result).points[0].comparisons:                         # doctest: +SKIP
...     print(comparison.metric, comparison.relative, comparison.within_spread, comparison.meets_aim)
"""

from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
