"""What differs among runs, and what to call them by it.

Runs that differ in nothing but their seed are *repetitions* of one point. Whatever else differs tells them apart: a
swept value, a setting that `--set` changed, the engine, its kernel, the experiment. Where none of these explains why
two scenarios are unlike (the experiment's file was edited in between), the keys of the scenario that differ do.
"""

from bufferscope.variation.settings import settings
from bufferscope.variation.varying import Variation

__all__ = ["Variation", "settings"]
