"""Find what differs among runs, and label the runs by it.

Runs that differ only in their seed are *repetitions* of one point. All other differences distinguish runs: a swept
value, a setting that `--set` changed, the engine, its kernel, the experiment. If two scenarios differ for none of these
reasons, because the experiment's file was edited between the runs, the differing keys of the scenarios distinguish
them.
"""

from bufferscope.results.variation.varying import Variation
from bufferscope.store.settings import settings

__all__ = ["Variation", "settings"]
