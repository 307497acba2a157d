"""The server of live measurements: the program itself, whose output and signals pass through."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from bufferscope.base.errors import EngineError
from bufferscope.engines.live.program import program

RELAYED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(arguments: Sequence[str]) -> int:
    """Run the server to its end; returns its exit status. Raises `EngineError` if it can't be started.

    Its output goes where ours goes. Signals that would end this process are passed on, so that it closes its tests.
    """
    place = program()
    try:
        process = subprocess.Popen([place, "serve", *arguments], process_group=0, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise EngineError(f"cannot start {place}: {error.strerror}") from None

    def relay(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)

    before = {number: signal.signal(number, relay) for number in RELAYED}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
