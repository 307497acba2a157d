"""Helpers for the tests of guests."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from laboratory import SMALL, TABLES, write

import bufferscope as bs
from bufferscope.base import machine
from bufferscope.engines import agent
from bufferscope.engines.guest import build
from bufferscope.engines.guest import engine as guest
from bufferscope.engines.guest.image import Image
from bufferscope.metrics import Metrics, compute
from bufferscope.model.experiment import Point, load

Carry = Callable[..., dict[str, bytes]]
"""Runs an experiment's text and gives its tables' bytes."""

ROUTED = SMALL.replace('ends = ["h1", "h2"]', 'ends = ["r1", "h2"]').replace(
    "[[traffic]]", '[[link]]\nname = "access"\nends = ["h1", "r1"]\n\n[[traffic]]', 1
)
"""The small lab with its queue on a router: a Linux host keeps its flows from filling its own queue."""

JOBS = max(1, machine.cpus() // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
"""Guests at a time: without a processor of its own, a guest takes twice as long, and other tests run, too."""


def build_guest(kernel: str | None = None) -> Image:
    """The guest of a kernel, by default of the one that runs take, with the installed agent."""
    return build.build(build.kernel(kernel, print), agent.program(), print)


def point(text: str, directory: Path) -> Point:
    return load(write(directory, text)).points[0]


def run_on_both(text: str, directory: Path, repeat: int = 1) -> tuple[list[bs.Run], list[bs.Run]]:
    """Each repetition of an experiment's text, on the simulator and on a guest."""
    build_guest()
    result = bs.run(write(directory, text), engine=["sim", "guest"], repeat=repeat, out=directory / "out")
    sims, guests = (list(result.by_engine[engine]) for engine in ("sim", "guest"))
    assert len(sims) == len(guests) == repeat
    return sims, guests


def measured_on_both(text: str, directory: Path, repeat: int = 1) -> tuple[list[Metrics], list[Metrics]]:
    """The metrics of each repetition of an experiment's text, on the simulator and on a guest."""
    sims, guests = run_on_both(text, directory, repeat)
    return [compute(run) for run in sims], [compute(run) for run in guests]


def carried(text: str, directory: Path, seed: int = 1, kernel: str | None = None) -> dict[str, bytes]:
    """The tables' bytes of a run of an experiment's text."""
    path = directory / f"run-{len(list(directory.iterdir()))}"
    path.mkdir()
    guest.run(point(text, directory), seed, path, lambda *_: True, kernel=kernel)
    return {table: (path / f"{table}.parquet").read_bytes() for table in TABLES}


@contextmanager
def busy_machine() -> Iterator[None]:
    """Two processes per processor that only take processor time from others."""
    spin = ["sh", "-c", "while :; do :; done"]
    processes = [subprocess.Popen(spin) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
