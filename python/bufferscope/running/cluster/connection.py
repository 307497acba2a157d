"""Connecting to a cluster: to a running scheduler, or to one that is started here with its workers."""

import asyncio
import logging
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dask
import distributed
from distributed.deploy.subprocess import SubprocessWorker

from bufferscope.base.errors import EngineError
from bufferscope.running.cluster.address import Local, Remote
from bufferscope.running.cluster.words import one_line

HERE = "127.0.0.1"
ANSWER_S = 5
"""How long a scheduler may take to answer."""
START_S = 60
"""How long workers may take to start on this machine."""
JOIN_S = 10
"""How long a scheduler that already runs may be without a worker."""


@contextmanager
def client_of(where: Local | Remote) -> Iterator[distributed.Client]:
    """A client of a scheduler that has workers; raises `EngineError` if there is no such scheduler."""
    with _silence():
        if isinstance(where, Remote):
            with _connected(where.address) as client:
                _wait_for_workers(client, 1, JOIN_S)
                yield client
        else:
            with _started(where.workers) as address, _connected(address) as client:
                _wait_for_workers(client, where.workers, START_S)
                yield client


@contextmanager
def _connected(address: str) -> Iterator[distributed.Client]:
    _check_scheduler(address)
    client = distributed.Client(address, timeout=ANSWER_S, set_as_default=False)
    try:
        yield client
    finally:
        client.close(timeout=ANSWER_S)


def _check_scheduler(address: str) -> None:
    """Raise `EngineError` unless a scheduler answers soon; with some other servers, a client would wait for ever."""
    with ThreadPoolExecutor(1) as pool:  # in a notebook, the thread that calls us already has an event loop
        try:
            found = pool.submit(asyncio.run, asyncio.wait_for(_kind(address), ANSWER_S)).result()
        except Exception as error:  # another server may answer our question in any way
            reason = f"nothing within {ANSWER_S} s" if isinstance(error, TimeoutError) else one_line(error)
        else:
            if found == "Scheduler":
                return
            reason = f"found a {found}"
    raise EngineError(
        f"no Dask scheduler answers at {address} ({reason}): start one with `dask scheduler`, or check host and port"
    )


async def _kind(address: str) -> str:
    """The kind of server that a Dask server says it is."""
    async with distributed.rpc(address, timeout=ANSWER_S) as server:
        return str((await server.identity())["type"])


@contextmanager
def _started(workers: int) -> Iterator[str]:
    """The address of a new scheduler in this process, with worker processes that end with it."""
    alike = {"host": HERE, "dashboard": False}
    scheduler = {"cls": distributed.Scheduler, "options": {**alike, "port": 0, "dashboard_address": f"{HERE}:0"}}
    # Otherwise Dask leaves its directory `dask-scratch-space` behind, for other clusters of the user.
    with (
        tempfile.TemporaryDirectory(prefix="bufferscope-", ignore_cleanup_errors=True) as scratch,
        dask.config.set({"temporary-directory": scratch}),
    ):
        options = {
            **alike,
            "nthreads": 1,
            "memory_limit": 0,
            "silence_logs": logging.CRITICAL,
            "local_directory": scratch,
        }
        # Dask's default worker processes may run the script that called us again; workers in subprocesses never do.
        worker = {"cls": SubprocessWorker, "options": {"worker_class": "distributed.Worker", "worker_kwargs": options}}
        with distributed.SpecCluster(
            scheduler=scheduler, workers=dict.fromkeys(range(workers), worker), silence_logs=logging.CRITICAL
        ) as cluster:
            yield cluster.scheduler_address


def _wait_for_workers(client: distributed.Client, number: int, patience_s: float) -> None:
    try:
        client.wait_for_workers(number, timeout=patience_s)
    except TimeoutError:
        there = len(client.nthreads())
        raise EngineError(
            f"the scheduler at {client.scheduler.address} has {there} of {number} workers after {patience_s} s: start "
            f"one with `dask worker {client.scheduler.address}`"
        ) from None


@contextmanager
def _silence() -> Iterator[None]:
    """Keep Dask's own log off the terminal: we report what matters as our own errors."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.gc")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
