"""Ctrl-C: what it ends at once, and what is said when it has been dealt with."""

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class CutShortError(Exception):
    """The user stopped the command; the text says what was finished and where it is.

    No `KeyboardInterrupt`, which typer would turn into an exit status without a word.
    """


def at_once(doing: str, work: Callable[[], T], left: str = "") -> T:
    """Do `work`, and give up waiting for it on Ctrl-C: raises `CutShortError` then, with `doing` and what is `left`.

    Python hears of Ctrl-C between two of its own instructions only, and a large sweep, a long table or a figure keeps a
    library's native code busy for seconds. So the work has a thread of its own, and the main thread is free to listen.
    Not for work that has to be cleaned up after: it is abandoned where it is.
    """
    outcome: list[T] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, name="work", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        atexit.register(_leave, thread)
        raise CutShortError(f"interrupted while {doing}" + (f"; {left}" if left else "")) from None
    if errors:
        raise errors[0]
    return outcome[0]


def _leave(abandoned: threading.Thread) -> None:
    """End the process although a thread is still in native code, which the interpreter's own end may not survive."""
    if abandoned.is_alive():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
