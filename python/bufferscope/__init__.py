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
    from bufferscope.analysis.explanation.statement import Cause, Statement, StatementKind
    from bufferscope.analysis.fixing.advice import Advice, Step
    from bufferscope.analysis.fixing.located import LocatedQueue
    from bufferscope.analysis.fixing.rates import ShaperRate
    from bufferscope.api import choose, compare, fix, load, measure, model_line, run
    from bufferscope.base.errors import EngineError, ExperimentError, InputError, StoreError
    from bufferscope.engines.engine import EngineName
    from bufferscope.figures.charts_of import Charts
    from bufferscope.model.experiment import DrawnMember, Experiment, ExperimentDocument, Point, SweepAxis, catalogue
    from bufferscope.model.figure_names import FigureName
    from bufferscope.model.scenario import CongestionControl, Scenario
    from bufferscope.model.table_names import FrameName, TableName
    from bufferscope.results.result import Result
    from bufferscope.results.variation.varying import Variation
    from bufferscope.results.verdicts import ExpectationResult, Verdict
    from bufferscope.running.executors import Watcher
    from bufferscope.running.layout import StorageLayout
    from bufferscope.running.stepping import FlowState, PortState, Simulation, SimulationState, SimulationTables
    from bufferscope.store.memory import MemoryRun
    from bufferscope.store.metadata import Metadata
    from bufferscope.store.partition import RunFacts
    from bufferscope.store.run import Run
    from bufferscope.store.verdict import Direction, Location, PhaseKind, PhaseVerdict, Place
    from bufferscope.studies.agreement.comparing import MetricComparison
    from bufferscope.studies.choice.bottleneck import Bottleneck
    from bufferscope.studies.choice.candidates import QueueCandidate
    from bufferscope.studies.choice.judging import Choice, ChoiceVerdict, MeasuredCandidate
    from bufferscope.studies.comparison.arms import Arm, PointArms
    from bufferscope.studies.comparison.comparing import Comparison, Difference, PointComparison
    from bufferscope.studies.modelling.fitting import HeldPhase, LineFit
    from bufferscope.studies.modelling.line import LineModel, LoadOpening, ModelledQueue
    from bufferscope.studies.modelling.measured import (
        MeasuredDirection,
        MeasuredLine,
        MeasuredPhase,
        PhaseResult,
        QueueEvidence,
    )
    from bufferscope.studies.modelling.predicting import Prediction
    from bufferscope.studies.modelling.shaping import ShapedLine
    from bufferscope.studies.sizing.equations import EquationResult
    from bufferscope.studies.sizing.line import SizedLine
    from bufferscope.studies.sizing.search import MeasuredQueue, SimulatedSizing
    from bufferscope.studies.sizing.settings import QueueSetting
    from bufferscope.studies.sizing.sizing import Sizing, size

__all__ = [
    "TABLES",
    "Advice",
    "Arm",
    "Bottleneck",
    "Cause",
    "Charts",
    "Choice",
    "ChoiceVerdict",
    "Comparison",
    "CongestionControl",
    "Difference",
    "Direction",
    "DrawnMember",
    "EngineError",
    "EngineName",
    "EquationResult",
    "ExpectationResult",
    "Experiment",
    "ExperimentDocument",
    "ExperimentError",
    "Explanation",
    "FigureName",
    "FlowState",
    "FrameName",
    "HeldPhase",
    "InputError",
    "LineFit",
    "LineModel",
    "LoadOpening",
    "LocatedQueue",
    "Location",
    "MeasuredCandidate",
    "MeasuredDirection",
    "MeasuredLine",
    "MeasuredPhase",
    "MeasuredQueue",
    "MemoryRun",
    "Metadata",
    "MetricComparison",
    "ModelledQueue",
    "PhaseKind",
    "PhaseResult",
    "PhaseVerdict",
    "Place",
    "Point",
    "PointArms",
    "PointComparison",
    "PortState",
    "Prediction",
    "QueueCandidate",
    "QueueEvidence",
    "QueueSetting",
    "Result",
    "Run",
    "RunFacts",
    "Scenario",
    "ShapedLine",
    "ShaperRate",
    "SimulatedSizing",
    "Simulation",
    "SimulationState",
    "SimulationTables",
    "SizedLine",
    "Sizing",
    "Statement",
    "StatementKind",
    "Step",
    "StorageLayout",
    "StoreError",
    "SweepAxis",
    "TableName",
    "Variation",
    "Verdict",
    "Watcher",
    "__version__",
    "catalogue",
    "choose",
    "compare",
    "explain",
    "figures",
    "fix",
    "load",
    "measure",
    "metrics",
    "model_line",
    "report",
    "run",
    "size",
]

_HOMES = {
    "TABLES": "_core",
    "Advice": "analysis.fixing.advice",
    "Arm": "studies.comparison.arms",
    "Bottleneck": "studies.choice.bottleneck",
    "Cause": "analysis.explanation.statement",
    "Charts": "figures.charts_of",
    "Choice": "studies.choice.judging",
    "ChoiceVerdict": "studies.choice.judging",
    "Comparison": "studies.comparison.comparing",
    "CongestionControl": "model.scenario",
    "Difference": "studies.comparison.comparing",
    "Direction": "store.verdict",
    "DrawnMember": "model.experiment",
    "EngineError": "base.errors",
    "EngineName": "engines.engine",
    "EquationResult": "studies.sizing.equations",
    "ExpectationResult": "results.verdicts",
    "Experiment": "model.experiment",
    "ExperimentDocument": "model.experiment",
    "ExperimentError": "base.errors",
    "Explanation": "analysis.explanation",
    "FigureName": "model.figure_names",
    "FlowState": "running.stepping",
    "FrameName": "model.table_names",
    "HeldPhase": "studies.modelling.fitting",
    "InputError": "base.errors",
    "LineFit": "studies.modelling.fitting",
    "LineModel": "studies.modelling.line",
    "LoadOpening": "studies.modelling.line",
    "LocatedQueue": "analysis.fixing.located",
    "Location": "store.verdict",
    "MeasuredCandidate": "studies.choice.judging",
    "MeasuredDirection": "studies.modelling.measured",
    "MeasuredLine": "studies.modelling.measured",
    "MeasuredPhase": "studies.modelling.measured",
    "MeasuredQueue": "studies.sizing.search",
    "MemoryRun": "store.memory",
    "Metadata": "store.metadata",
    "MetricComparison": "studies.agreement.comparing",
    "ModelledQueue": "studies.modelling.line",
    "PhaseKind": "store.verdict",
    "PhaseResult": "studies.modelling.measured",
    "PhaseVerdict": "store.verdict",
    "Place": "store.verdict",
    "Point": "model.experiment",
    "PointArms": "studies.comparison.arms",
    "PointComparison": "studies.comparison.comparing",
    "Prediction": "studies.modelling.predicting",
    "PortState": "running.stepping",
    "QueueCandidate": "studies.choice.candidates",
    "QueueEvidence": "studies.modelling.measured",
    "QueueSetting": "studies.sizing.settings",
    "Result": "results.result",
    "Run": "store.run",
    "RunFacts": "store.partition",
    "Scenario": "model.scenario",
    "ShapedLine": "studies.modelling.shaping",
    "ShaperRate": "analysis.fixing.rates",
    "SimulatedSizing": "studies.sizing.search",
    "Simulation": "running.stepping",
    "SimulationState": "running.stepping",
    "SimulationTables": "running.stepping",
    "SizedLine": "studies.sizing.line",
    "Sizing": "studies.sizing.sizing",
    "Statement": "analysis.explanation.statement",
    "StatementKind": "analysis.explanation.statement",
    "Step": "analysis.fixing.advice",
    "StorageLayout": "running.layout",
    "StoreError": "base.errors",
    "SweepAxis": "model.experiment",
    "TableName": "model.table_names",
    "Variation": "results.variation.varying",
    "Verdict": "results.verdicts",
    "Watcher": "running.executors",
    "__version__": "_core",
    "catalogue": "model.experiment",
    "choose": "api",
    "compare": "api",
    "explain": "analysis.explanation",
    "figures": "figures",
    "fix": "api",
    "load": "api",
    "measure": "api",
    "metrics": "metrics",
    "model_line": "api",
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
        "figures.needed": "bufferscope.figures.declaring:needed",
        "metrics.definitions": "bufferscope.metrics.declared:definitions",
        "report": "bufferscope.report:build",
    }
)


def __dir__() -> list[str]:
    return sorted(__all__)
