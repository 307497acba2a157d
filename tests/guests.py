"""What the tests of guests have in common."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from laboratory import write

from bufferscope.engines import agent
from bufferscope.experiment import Point, load
from bufferscope.guest import build
from bufferscope.guest.image import Image

Carry = Callable[..., dict[str, bytes]]
"""Runs an experiment's text and gives its tables' bytes."""


def build_guest(kernel: str | None = None) -> Image:
    """The guest of a kernel, by default of the one that runs take, with the agent at hand."""
    return build.build(build.kernel(kernel, print), agent.program(), print)


def point(text: str, directory: Path) -> Point:
    return load(write(directory, text)).points[0]


@contextmanager
def busy_machine() -> Iterator[None]:
    """Two processes a processor that do nothing but take time from others."""
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_spin, daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def _spin() -> None:
    while True:
        pass
