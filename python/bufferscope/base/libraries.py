"""Large libraries, which take a while to load: under these names, they are loaded when they are first used.

The modules of metrics and figures import them from here, so that it is cheap to ask what metrics and figures there are.
With `from __future__ import annotations`, annotations do not load them either.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as altair
    import numpy as numpy
    import polars as polars
else:
    from bufferscope.base import lazy

    altair, numpy, polars = map(lazy.Library, ("altair", "numpy", "polars"))
