"""What reading one file may cost: one budget of memory and time for each file, whatever its format.

The budget is that of the current file, so every reader draws on the same one: the bytes when they are read and
decompressed, and the records (probes and samples) when they are made. Nothing grows with a number in a file before the
budget has allowed it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bufferscope.base import machine
from bufferscope.interop.importing.unusable import Unusable

MOST_MEMORY_BYTES = 2 << 30
"""For what a file becomes in memory, on a machine that has more."""
RESERVE_BYTES = 384 << 20
"""Left for the libraries that store the records."""
RECORD_BYTES = 600
"""A probe or a sample in memory, from its line to its row of a table; measured with logs of 700,000 pings."""
TABLE_BYTES = 200
"""A row of a table while it is made and written."""
CHECKED_EVERY = 4096
"""Records between two looks at the clock."""
MOST_MISSING = 1_000_000
"""Probes that a file's numbers may leave out; beyond it, they are none."""
MOST_SECONDS = 120.0


class Budget:
    """The memory and the time that are left for a file."""

    def __init__(self, memory_bytes: int = MOST_MEMORY_BYTES, seconds: float = MOST_SECONDS) -> None:
        """Begin a budget; the clock runs from now on."""
        self.memory_bytes = self._left_bytes = max(0, memory_bytes)
        self._missing = self._records = 0
        self._seconds = seconds
        self._ends_s = time.monotonic() + seconds

    def bytes(self, size: int, what: str) -> None:
        """Take memory; raises `Unusable`, which names `what` needs it."""
        self.time()
        if size > self._left_bytes:
            raise Unusable(
                f"found {what}, which needs more memory than the {machine.gigabytes(self.memory_bytes)} that a file "
                "may take here; import a part of it"
            )
        self._left_bytes -= size

    def records(self, count: int) -> None:
        """Take the memory of probes or samples; raises `Unusable`."""
        self._records += count
        self._left_bytes -= count * RECORD_BYTES
        if self._left_bytes < 0:
            self.bytes(1, f"{self._records:,} probes or samples")
        if self._records % CHECKED_EVERY < count:
            self.time()

    def tables(self, rows: int) -> None:
        """Look whether the memory that is left suffices for tables of so many rows; raises `Unusable`."""
        available = machine.available_bytes()
        if available is not None and rows * TABLE_BYTES + RESERVE_BYTES // 2 > available:
            raise Unusable(f"found {rows:,} probes and samples, for which this machine has not enough memory left")

    def missing(self, count: int, where: str) -> None:
        """Take probes that the file only implies; raises `Unusable`, which says `where` they are missing."""
        self._missing += count
        if self._missing > MOST_MISSING:
            raise Unusable(f"{where}: {self._missing:,} are missing; allowed: at most {MOST_MISSING:,} in a file")
        self.records(count)

    def time(self) -> None:
        """Raise `Unusable` if the time is over."""
        if time.monotonic() > self._ends_s:
            raise Unusable(f"reading takes more than {self._seconds:g} s; import a part of the file")


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limits(budget: Budget | None = None) -> Iterator[Budget]:
    """Read a file within a budget; by default the current one, or else one that suits the memory that is left."""
    chosen = budget or _current.get() or Budget(_memory_bytes())
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
