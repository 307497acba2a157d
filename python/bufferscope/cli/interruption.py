"""Ctrl-C: ending work at once, and reporting what was finished."""

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from bufferscope.base.waiting import PATIENCE_S

T = TypeVar("T")


class CutShortError(Exception):
    """The user stopped the command; the text says what was finished and where it is.

    Not a `KeyboardInterrupt`, which typer would turn into an exit status without a message.
    """


def at_once(doing: str, work: Callable[[], T], left: str = "") -> T:
    """Do `work`; on Ctrl-C, stop waiting for it and raise `CutShortError`, with `doing` and what is `left`.

    Python handles Ctrl-C only between two of its own instructions, and a large sweep, a long table or a figure keeps a
    library's native code busy for seconds. So the work gets its own thread, and the main thread is free to listen.
    Do not use this for work that needs cleaning up: it is abandoned where it is.
    """
    outcome: list[T] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, name="work", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(PATIENCE_S)
    except KeyboardInterrupt:
        atexit.register(_leave, thread)
        raise CutShortError(f"interrupted while {doing}" + (f"; {left}" if left else "")) from None
    if errors:
        raise errors[0]
    return outcome[0]


def _leave(abandoned: threading.Thread) -> None:
    """End the process while a thread is still in native code, where the interpreter's normal exit could crash."""
    if abandoned.is_alive():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
