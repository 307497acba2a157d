"""Real clusters on this machine: a scheduler and workers, each a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from distributed import Client

PATIENCE_S = 60


class Cluster:
    """A scheduler, and the processes of its workers by their addresses."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        """Start a scheduler, whose files go into a directory."""
        self._directory = directory
        self._stack = stack
        file = directory / "scheduler.json"
        self._scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        self.address = _written(file)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def add_worker(self, *, preload: str = "", qemu: str = "nowhere") -> str:
        """Start a worker with one thread, which first runs the Python text `preload`; returns its address."""
        options = ["--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--memory-limit", "0"]
        options += ["--local-directory", str(self._directory)]
        if preload:
            file = self._directory / f"preload_{len(self.workers)}.py"
            file.write_text(preload)
            options += ["--preload", str(file)]
        process = self._start("worker", self.address, *options, BUFFERSCOPE_QEMU=qemu)
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(1 + sum(worker.poll() is None for worker in self.workers.values()), PATIENCE_S)
            (address,) = map(str, set(client.nthreads()) - set(self.workers))
        self.workers[address] = process
        return address

    def kill(self, address: str) -> None:
        """End a worker as an outage would."""
        _end(self.workers[address])

    def kill_scheduler(self) -> None:
        """End the scheduler as an outage would."""
        _end(self._scheduler)

    def alive(self) -> list[str]:
        """The workers that have not been killed."""
        return [address for address, process in self.workers.items() if process.poll() is None]

    def busy(self) -> list[str]:
        """The workers that the scheduler has given jobs."""
        return [address for address, jobs in self._ask(lambda client: client.processing()).items() if jobs]

    def running(self) -> int:
        """How many jobs the workers are running, whether or not anybody still wants the results."""
        return sum(self._ask(lambda client: client.run(lambda dask_worker: len(dask_worker.active_threads))).values())

    def _ask(self, question: Callable[[Client], dict[str, Any]]) -> dict[str, Any]:
        with Client(self.address, set_as_default=False) as client:
            return question(client)

    def _start(self, kind: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self._directory / "log").open("ab"))
        command = [sys.executable, "-m", "dask", kind, "--no-dashboard", *options]
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=self._directory, env={**os.environ, **environment}
        )
        self._stack.callback(_end, process)
        return process


@contextmanager
def cluster(directory: Path, preloads: Sequence[str] = ("", "")) -> Iterator[Cluster]:
    """A cluster with one worker for each of these Python texts, which that worker runs first."""
    with ExitStack() as stack:
        there = Cluster(directory, stack)
        for preload in preloads:
            there.add_worker(preload=preload)
        yield there


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for something that is bound to happen."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.1)


def _written(file: Path) -> str:
    """The address in a scheduler's file, once it is whole."""
    found: list[str] = []

    def read() -> bool:
        with suppress(OSError, ValueError):
            found.append(json.loads(file.read_text())["address"])
        return bool(found)

    wait_until(read)
    return found[0]
