"""An instrument for bufferbloat: reproduce it, measure it, explain it, fix it.

>>> import bufferscope as bs
>>> result = bs.run("ucas-reproduce")                                                           # doctest: +SKIP
>>> result.probes                                      # a polars frame, one row per ping       # doctest: +SKIP
>>> bs.figures.queue_length(result)                    # an Altair chart                        # doctest: +SKIP

Names are loaded when they are first used, so importing the package, or asking the command line for help, is fast.
"""

from typing import TYPE_CHECKING

from bufferscope.base import attach, lazy

if TYPE_CHECKING:
    from bufferscope import figures, metrics, report
    from bufferscope._core import TABLES, __version__
    from bufferscope.analysis.explanation import Explanation, explain
    from bufferscope.api import choose, compare, load, run
    from bufferscope.base.errors import EngineError, ExperimentError, InputError, StoreError
    from bufferscope.model.experiment import Experiment, catalogue
    from bufferscope.results.result import Result
    from bufferscope.running.stepping import Simulation
    from bufferscope.store.memory import MemoryRun
    from bufferscope.store.run import Run
    from bufferscope.studies.choice.judging import Choice
    from bufferscope.studies.comparison.comparing import Comparison
    from bufferscope.studies.sizing.sizing import Sizing, size

__all__ = [
    "TABLES",
    "Choice",
    "Comparison",
    "EngineError",
    "Experiment",
    "ExperimentError",
    "Explanation",
    "InputError",
    "MemoryRun",
    "Result",
    "Run",
    "Simulation",
    "Sizing",
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
    "Choice": "studies.choice.judging",
    "Comparison": "studies.comparison.comparing",
    "EngineError": "base.errors",
    "Experiment": "model.experiment",
    "ExperimentError": "base.errors",
    "Explanation": "analysis.explanation",
    "InputError": "base.errors",
    "MemoryRun": "store.memory",
    "Result": "results.result",
    "Run": "store.run",
    "Simulation": "running.stepping",
    "Sizing": "studies.sizing.sizing",
    "StoreError": "base.errors",
    "catalogue": "model.experiment",
    "choose": "api",
    "compare": "api",
    "explain": "analysis.explanation",
    "figures": "figures",
    "load": "api",
    "metrics": "metrics",
    "report": "report",
    "run": "api",
    "size": "studies.sizing.sizing",
}
__getattr__ = lazy.names(__name__, _HOMES)

attach.register(
    {
        "Run.metrics": "bufferscope.metrics.measuring:compute",
        "Run.html": "bufferscope.report.notebook:run_html",
        "Result.html": "bufferscope.report.notebook:result_html",
        "Comparison.report": "bufferscope.report.comparison:build",
        "Comparison.html": "bufferscope.report.notebook:comparison_html",
        "engine.rank": "bufferscope.engines:rank",
        "figures": "bufferscope.figures.charts_of:Charts",
        "report": "bufferscope.report:build",
    }
)


def __dir__() -> list[str]:
    return sorted(__all__)
