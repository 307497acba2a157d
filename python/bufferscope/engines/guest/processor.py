"""Reserve a processor of this machine for one run.

Whenever the guest becomes idle, thousands of times per virtual second, QEMU's threads wake each other, and only one of
them has work at a time. On different processors, a wakeup takes longer than the work that follows it. If the threads
have one processor to themselves, and a woken thread does not preempt its waker at once, they take half the time.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bufferscope.engines.guest import cache


@contextmanager
def taken() -> Iterator[int | None]:
    """A processor that no other run uses. None if all are taken; then the system schedules the threads as usual."""
    allowed = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(
        allowed
    )  # so that runs with different lock directories do not all begin with the same processor
    for number in allowed[first:] + allowed[:first]:
        with cache.attempted_lock(f"processor-{number}") as held:
            if held:
                yield number
                return
    yield None


def settle(number: int | None) -> None:
    """Move the calling process to this processor, and let its threads take turns there.

    `SCHED_BATCH` gives an ordinary share of the processor, but a woken thread waits until its waker sleeps. Under a
    real-time policy QEMU can hang: one thread polls for the work of another, which does not get the processor.
    """
    with suppress(OSError):
        if number is not None:
            os.sched_setaffinity(0, {number})
        if os.sched_getscheduler(0) != os.SCHED_IDLE:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
