"""One run of a guest: restore the guest, give it its request, and read its output until it powers itself off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bufferscope.engines.guest.cards import Pair
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.hardware import Qemu
from bufferscope.engines.guest.image import Image
from bufferscope.engines.guest.process import Process, Tail
from bufferscope.engines.guest.virtual import restored


@dataclass(frozen=True)
class RunCost:
    """The cost of a finished run."""

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
) -> RunCost | None:
    """Run a request on a machine with these pairs of network cards.

    `receive` gets the guest's output piece by piece; it returns False to end the run (`None`).
    """
    with restored(qemu, image, state, request, pairs) as process:
        if not _listen(process, receive):
            return None
        if process.status != 0:
            raise GuestError(process.explanation())
        return RunCost(process.cpu_s)


def _listen(process: Process, receive: Callable[[bytes], bool]) -> bool:
    frames = Tail(process.frames)
    return all(receive(data) for _ in process.turns() for data in frames)
