"""Size a buffer: the documents' equations as a calculator, checked by simulations of the same line."""

from bufferscope.studies.sizing.equations import EquationResult, answers
from bufferscope.studies.sizing.line import SizedLine, read_line
from bufferscope.studies.sizing.search import MeasuredQueue, SimulatedSizing
from bufferscope.studies.sizing.settings import QueueSetting, settings
from bufferscope.studies.sizing.sizing import Sizing, size

__all__ = [
    "EquationResult",
    "MeasuredQueue",
    "QueueSetting",
    "SimulatedSizing",
    "SizedLine",
    "Sizing",
    "answers",
    "read_line",
    "settings",
    "size",
]
