"""The server of live measurements: the program itself, in the place of this process."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from bufferscope.base.errors import EngineError
from bufferscope.engines.live.program import program


def serve(arguments: Sequence[str]) -> NoReturn:
    """Become the server. Raises `EngineError` if it can't be started.

    The process stays the same, so signals reach the server, and a service manager sees a new process only if the server
    starts one for an upgrade.
    """
    place = program()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(place, [str(place), "serve", *arguments])
    except OSError as error:
        raise EngineError(f"cannot start {place}: {error.strerror}") from None
