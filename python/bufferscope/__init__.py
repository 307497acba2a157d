"""An instrument for bufferbloat: reproduce it, measure it, explain it, fix it.

>>> import bufferscope as bs
>>> result = bs.run("ucas-reproduce")                                                           # doctest: +SKIP
>>> result.probes                                      # a polars frame, one row a ping         # doctest: +SKIP
>>> bs.figures.queue_length(result)                    # an Altair chart                        # doctest: +SKIP

Names are loaded when they are first used, so importing the package, or asking the command line for help, is fast.
"""

from typing import TYPE_CHECKING

from bufferscope import lazy

if TYPE_CHECKING:
    from bufferscope import figures, metrics, report
    from bufferscope._core import TABLES, __version__
    from bufferscope.api import choose, compare, load, run
    from bufferscope.errors import EngineError, ExperimentError, InputError, StoreError
    from bufferscope.experiment import Experiment, catalogue
    from bufferscope.explanation import Explanation, explain
    from bufferscope.result import Result
    from bufferscope.sizing.sizing import size
    from bufferscope.stepping import Simulation
    from bufferscope.store.run import Run

__all__ = [
    "TABLES",
    "EngineError",
    "Experiment",
    "ExperimentError",
    "Explanation",
    "InputError",
    "Result",
    "Run",
    "Simulation",
    "StoreError",
    "__version__",
    "catalogue",
    "choose",
    "compare",
    "explain",
    "figures",
    "load",
    "metrics",
    "report",
    "run",
    "size",
]

_HOMES = {
    "TABLES": "_core",
    "__version__": "_core",
    "EngineError": "errors",
    "Experiment": "experiment",
    "ExperimentError": "errors",
    "Explanation": "explanation",
    "InputError": "errors",
    "Result": "result",
    "Run": "store.run",
    "Simulation": "stepping",
    "StoreError": "errors",
    "catalogue": "experiment",
    "choose": "api",
    "compare": "api",
    "explain": "explanation",
    "figures": "figures",
    "load": "api",
    "metrics": "metrics",
    "report": "report",
    "run": "api",
    "size": "sizing.sizing",
}
__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
