"""What reading one file may cost: one budget of memory and time for each file, whatever its format.

The budget is that of the current file, so every reader draws on the same one: the bytes when they are read and
decompressed, and the records (probes and samples) when they are made. Nothing grows with a number in a file before the
budget has allowed it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bufferscope import machine
from bufferscope.importing.unusable import Unusable

MOST_MEMORY_BYTES = 2 << 30
"""For what a file becomes in memory, on a machine that has more."""
RESERVE_BYTES = 256 << 20
"""Left for the libraries that store the records."""
RECORD_BYTES = 500
"""A probe or a sample in memory, from its line to its row of a table; measured with the CSV of the tests."""
MOST_SECONDS = 120.0


class Budget:
    """The memory and the time that are left for a file."""

    def __init__(self, memory_bytes: int = MOST_MEMORY_BYTES, seconds: float = MOST_SECONDS) -> None:
        """Begin a budget; the clock runs from now on."""
        self.memory_bytes = self._left_bytes = max(0, memory_bytes)
        self._seconds = seconds
        self._ends_s = time.monotonic() + seconds

    def bytes(self, size: int, what: str) -> None:
        """Take memory; raises `Unusable`, which names `what` needs it."""
        self.time()
        if size > self._left_bytes:
            raise Unusable(
                f"found {what}, which needs more memory than the {machine.gigabytes(self.memory_bytes)} that a file may "
                "take here; import a part of it"
            )
        self._left_bytes -= size

    def records(self, count: int) -> None:
        """Take the memory of probes or samples; raises `Unusable`."""
        self.bytes(count * RECORD_BYTES, f"{count:,} probes or samples")

    def time(self) -> None:
        """Raise `Unusable` if the time is over."""
        if time.monotonic() > self._ends_s:
            raise Unusable(f"reading takes more than {self._seconds:g} s; import a part of the file")


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limits(budget: Budget | None = None) -> Iterator[Budget]:
    """Read a file within a budget; by default, one that suits the memory that is left."""
    chosen = budget or Budget(_memory_bytes())
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)


def current() -> Budget:
    """The budget of the file that is being read; outside of `limits`, a full one."""
    return _current.get() or Budget()


def _memory_bytes() -> int:
    available = machine.available_bytes()
    return MOST_MEMORY_BYTES if available is None else min(MOST_MEMORY_BYTES, available - RESERVE_BYTES)
