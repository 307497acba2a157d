"""Exceptions whose text is for the user at the terminal.

The text is one line; an `ExperimentError` has one line for each problem of the file.

`InputError` and `ExperimentError` mean that the request is impossible as it was made (exit status 2 on the command
line). `EngineError` means that an engine failed to do something possible (exit status 1).
"""

import unicodedata
from numbers import Integral

from bufferscope._core import ExperimentError

__all__ = ["EngineError", "ExperimentError", "InputError", "StoreError", "printable", "printable_lines"]


def printable(text: str) -> str:
    r"""The text with escapes in place of line ends, characters that control terminals, and bytes that are not UTF-8.

    >>> print(printable("red: " + chr(27) + "[31m"))
    red: \x1b[31m
    """
    return text if text.isprintable() else "".join(c if _is_harmless(c) else repr(c)[1:-1] for c in text)


def _is_harmless(character: str) -> bool:
    """Whether a terminal shows it as itself; a space of any width is not printable to Python."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def printable_lines(text: str) -> str:
    r"""The same for text of several lines: line ends and tabs stay.

    >>> print(printable_lines("one" + chr(10) + "two" + chr(0x202E)))
    one
    two\u202e
    """
    return "".join(c if c in "\n\t" else printable(c) for c in text)


class InputError(ValueError):
    """Wrong usage: an unknown name, an impossible number, an output directory that can't be written."""


class StoreError(InputError):
    """A stored run that is missing, incomplete, or not a run of bufferscope at all."""


class EngineError(RuntimeError):
    """An engine could not carry out a run."""


def check_number(option: str, value: int, lowest: int, highest: int, why: str = "") -> None:
    """Raise `InputError` if an option is no integer within its bounds; `why` says where the upper one comes from."""
    if not isinstance(value, Integral):
        raise InputError(f"--{option}: found {value!r:.60}; allowed: a whole number from {lowest} to {highest}")
    if not lowest <= value <= highest:
        reason = f" ({why})" if why and value > highest else ""
        raise InputError(f"--{option}: found {value}; allowed: {lowest} to {highest}{reason}")
