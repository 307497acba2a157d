"""One run of a guest: restored, given its request, and listened to until it powers itself off."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import machine, processor
from .cards import Pair
from .errors import GuestError
from .image import Image
from .machine import Qemu
from .process import Process

_POLL_S = 0.05
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """What it took."""

    cpu_s: float
    """QEMU's CPU time."""


def run(
    qemu: Qemu,
    image: Image,
    state: Path,
    request: bytes,
    receive: Callable[[bytes], bool],
    *,
    pairs: Sequence[Pair] = (),
) -> Outcome | None:
    """Run a request on a machine with these pairs of network cards.

    `receive` gets the guest's output piece by piece; it returns False to end the run (`None`).
    """
    with (
        processor.taken() as number,
        state.open("rb") as saved,
        Process(
            request,
            lambda channels: machine.restore(qemu, image, channels, pairs),
            state=saved,
            prepare=lambda: processor.settle(number),
        ) as process,
    ):
        if not _listen(process, receive):
            return None
        if process.status != 0:
            raise GuestError(process.explanation())
        return Outcome(process.cpu_s)


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
