"""One run of a guest: restored, given its request, and listened to until it powers itself off."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import machine
from .errors import GuestError
from .image import Image
from .machine import Qemu
from .process import Process

_POLL_S = 0.05
_RESTORE_TIMEOUT_S = 60
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """What it took."""

    restore_s: float
    """From the start of QEMU until the guest went on from its saved state, and from there to its end."""
    run_s: float
    cpu_s: float
    """QEMU's, both together."""


def run(qemu: Qemu, image: Image, state: Path, request: bytes, receive: Callable[[bytes], bool]) -> Outcome | None:
    """Run a request. `receive` gets the guest's output piece by piece; it returns False to end the run (`None`)."""
    began = time.monotonic()
    with (
        state.open("rb") as saved,
        Process(request, lambda channels: machine.restore(qemu, image, channels), saved) as process,
    ):
        with process.explained():
            _resume(process)
        resumed = time.monotonic()
        if not _listen(process, receive):
            return None
        if process.status != 0:
            raise GuestError(process.explanation())
        return Outcome(resumed - began, time.monotonic() - resumed, process.cpu_s)


def _resume(process: Process) -> None:
    until = time.monotonic() + _RESTORE_TIMEOUT_S
    while process.qmp.execute("query-status")["status"] == "inmigrate":
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.005)
    process.qmp.execute("cont")


def _listen(process: Process, receive: Callable[[bytes], bool]) -> bool:
    offset = 0
    ended = False
    while not ended:
        ended = process.wait(_POLL_S)
        while data := os.pread(process.frames.fileno(), _READ_BYTES, offset):
            offset += len(data)
            if not receive(data):
                return False
    return True
