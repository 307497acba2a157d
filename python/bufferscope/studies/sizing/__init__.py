"""Size a buffer: the documents' equations as a calculator, checked by simulations of the same line."""

from bufferscope.studies.sizing.equations import EquationResult, answers
from bufferscope.studies.sizing.line import Line, read_line
from bufferscope.studies.sizing.search import MeasuredQueue, SimulatedSizing
from bufferscope.studies.sizing.settings import Setting, settings
from bufferscope.studies.sizing.sizing import Sizing, size

__all__ = [
    "EquationResult",
    "Line",
    "MeasuredQueue",
    "Setting",
    "SimulatedSizing",
    "Sizing",
    "answers",
    "read_line",
    "settings",
    "size",
]
