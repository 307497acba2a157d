"""A processor of this machine for one run alone.

Whenever the guest falls idle, which is thousands of times a virtual second, QEMU's threads wake each other, and only
one of them has something to do at a time. On different processors each waking costs more than what it is for; on one of
their own, and without making way for the woken one at once, they take half the time.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from . import cache


@contextmanager
def taken() -> Iterator[int | None]:
    """A processor that no other run has; None if all are taken: the system then places the threads as it sees fit."""
    allowed = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(allowed)  # runs that keep their locks elsewhere do not all begin with the same one
    for number in allowed[first:] + allowed[:first]:
        with cache.attempted_lock(f"processor-{number}") as held:
            if held:
                yield number
                return
    yield None


def settle(number: int | None) -> None:
    """Move the calling process to its processor, and let its threads take turns there.

    `SCHED_BATCH` is an ordinary share of the processor, except that who is woken waits until the waker waits itself.
    Under a real-time policy QEMU can hang: one thread looks again and again for what another would do, had it the time.
    """
    with suppress(OSError):
        if number is not None:
            os.sched_setaffinity(0, {number})
        if os.sched_getscheduler(0) != os.SCHED_IDLE:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
