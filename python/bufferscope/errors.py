"""What can go wrong, as exceptions whose text is for the person at the terminal.

The text is one line, but of an `ExperimentError` one line for each problem of the file.

`InputError` and `ExperimentError` mean that what was asked for is impossible as asked (exit status 2 on the command
line); `EngineError` that an engine failed at something possible (exit status 1).
"""

from bufferscope._core import ExperimentError

__all__ = ["EngineError", "ExperimentError", "InputError", "StoreError", "printable"]


def printable(text: str) -> str:
    r"""The text with everything escaped that ends lines or commands terminals, and bytes that are not UTF-8.

    >>> print(printable("red: " + chr(27) + "[31m"))
    red: \x1b[31m
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class InputError(ValueError):
    """Wrong usage: an unknown name, an impossible number, an output directory that can't be written."""


class StoreError(InputError):
    """A stored run that is not there, not whole, or not a run of bufferscope at all."""


class EngineError(RuntimeError):
    """An engine could not carry out a run."""
