"""A program in a host on this machine's kernel."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from bufferscope.engines import agent
from bufferscope.errors import EngineError


def become(request: bytes, command: Sequence[str]) -> NoReturn:
    """Become the agent, which runs `command` (or the user's shell) as the request says: its end is this process' end.

    Nothing is in between the terminal and the program that way, nor between its exit status and whoever waits for it.
    """
    program = agent.program()
    # Inherited by number, and without a name that could be left behind.
    descriptor = os.memfd_create("bufferscope-request", 0)
    os.write(descriptor, request)
    os.lseek(descriptor, 0, os.SEEK_SET)
    # What Python ignores, programs don't expect to be ignored.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, [str(program), "--shell", str(descriptor), *command])
    except OSError as error:
        raise EngineError(f"{program}: {error.strerror}") from error
