"""Size a buffer: the documents' equations as a calculator, checked by simulations of the same line."""

from bufferscope.sizing.equations import Answer, answers
from bufferscope.sizing.line import Line, read_line
from bufferscope.sizing.search import Found, Measured
from bufferscope.sizing.settings import Setting, settings
from bufferscope.sizing.sizing import Sizing, size

__all__ = ["Answer", "Found", "Line", "Measured", "Setting", "Sizing", "answers", "read_line", "settings", "size"]
