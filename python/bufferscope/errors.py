"""What can go wrong, as exceptions whose text is one line for the person at the terminal.

`InputError` and `ExperimentError` mean that what was asked for is impossible as asked (exit status 2 on the command
line); `EngineError` that an engine failed at something possible (exit status 1).
"""

from bufferscope._core import ExperimentError

__all__ = ["EngineError", "ExperimentError", "InputError", "StoreError"]


class InputError(ValueError):
    """Wrong usage: an unknown name, an impossible number, an output directory that can't be written."""


class StoreError(InputError):
    """A stored run that is not there, not whole, or not a run of bufferscope at all."""


class EngineError(RuntimeError):
    """An engine could not carry out a run."""
