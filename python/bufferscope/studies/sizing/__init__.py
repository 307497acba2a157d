"""Size a buffer: the documents' equations as a calculator, checked by simulations of the same line."""

from bufferscope.studies.sizing.equations import EquationResult, answers
from bufferscope.studies.sizing.line import Line, read_line
from bufferscope.studies.sizing.search import Found, MeasuredQueue
from bufferscope.studies.sizing.settings import Setting, settings
from bufferscope.studies.sizing.sizing import Sizing, size

__all__ = [
    "EquationResult",
    "Found",
    "Line",
    "MeasuredQueue",
    "Setting",
    "Sizing",
    "answers",
    "read_line",
    "settings",
    "size",
]
