"""A machine that continues from its saved state in virtual time, on a processor of its own if one is free."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bufferscope.engines.guest import hardware, processor
from bufferscope.engines.guest.cards import Pair
from bufferscope.engines.guest.hardware import Qemu
from bufferscope.engines.guest.image import Image
from bufferscope.engines.guest.process import Process


@contextmanager
def restored(qemu: Qemu, image: Image, state: Path, request: bytes, pairs: Sequence[Pair]) -> Iterator[Process]:
    """The restored machine of an image with these cards, given its request; killed if the block ends early."""
    with (
        processor.taken() as number,
        state.open("rb") as saved,
        Process(
            request,
            lambda channels: hardware.restore(qemu, image, channels, pairs),
            state=saved,
            furnished=image.furnished,
            prepare=lambda: processor.settle(number),
        ) as process,
    ):
        yield process
