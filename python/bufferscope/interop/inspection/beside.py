"""Work in threads of its own, so that Ctrl-C is heard while a library reads a file or waits for a pipe."""

import threading
from collections.abc import Callable, Sequence

from bufferscope.base.waiting import PATIENCE_S

ENDING_S = 1.0
"""How long interrupted work may take to end by itself; a read from a pipe without a writer never does."""


def together(works: Sequence[Callable[[], None]], stop: threading.Event) -> None:
    """Do all works at the same time; raises the first exception of one of them, in their order.

    If the main thread is interrupted, or a work fails, `stop` is set, which the others look at. Work that does not end
    is abandoned.
    """
    errors: dict[int, BaseException] = {}

    def attempt(number: int, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors[number] = error
            stop.set()

    threads = [threading.Thread(target=attempt, args=each, daemon=True) for each in enumerate(works)]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(PATIENCE_S)
    except BaseException:
        stop.set()
        for thread in threads:
            thread.join(ENDING_S)
        raise
    if errors:
        raise errors[min(errors)]
