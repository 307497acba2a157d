"""The kernel of this machine: real time, in network namespaces that exist as long as the agent's process."""

import dataclasses
import json
import os
import resource
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, TypedDict

from bufferscope import _core
from bufferscope.base.errors import EngineError
from bufferscope.engines import agent
from bufferscope.engines.frames import Receiver
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.recording import recorder
from bufferscope.model.experiment import Point

_READ_BYTES = 1 << 20
_QUESTION_TIMEOUT_S = 30

_ALONE = threading.Lock()
"""Held by the only run at a time: concurrent runs in real time would disturb one another."""


class Capabilities(TypedDict):
    """What a kernel can do, as the agent reports it."""

    kernel: str
    """Its release."""
    privilege: str
    qdiscs: dict[str, bool]
    """The disciplines, and whether it has them; so are the congestion controls."""
    congestion: dict[str, bool]


def run(
    point: Point, seed: int, directory: Path, progress: Callable[[int, int], bool], *, capture: bool = False
) -> Outcome:
    """Run a point once no other run is going on. With `capture`, the packets are stored, too.

    Raises `EngineError`, or `_core.Interrupted` after `progress` returned False.
    """
    with _ALONE:
        before_s = _children_cpu_s()
        receiver = Receiver(directory, progress, recorder(directory, point.scenario) if capture else None)
        request = agent.request(point, seed, {"capture": True} if capture else {})
        outcome = _carry(request, point, receiver, progress)
        return dataclasses.replace(outcome, cpu_s=_children_cpu_s() - before_s)


def _carry(request: bytes, point: Point, receiver: Receiver, progress: Callable[[int, int], bool]) -> Outcome:
    with subprocess.Popen([agent.program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if not progress(0, point.scenario["duration_ns"]):
                raise _core.Interrupted
            _ask(process.stdin, request)
            while data := os.read(process.stdout.fileno(), _READ_BYTES):
                if not receiver.feed(data):
                    raise _core.Interrupted
        finally:
            # The agent's network and traffic end with it.
            process.kill()
    return receiver.finish()


def _children_cpu_s() -> float:
    """CPU time of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def capabilities() -> Capabilities:
    """The agent's report on what this machine's kernel can do.

    Raises `EngineError` if the kernel does not allow network namespaces.
    """
    found: Capabilities = _told("--capabilities")
    return found


def refusals(points: Sequence[Point]) -> list[str | None]:
    """For each of these points, why this machine's kernel can't run it; None if it can."""
    told: list[str | None] = _told("--check", json.dumps([point.scenario for point in points]))
    return told


def _told(question: str, about: str = "") -> Any:
    """The agent's JSON answer to a question."""
    command = [str(agent.program()), question]
    try:
        done = subprocess.run(
            command, input=about, capture_output=True, text=True, timeout=_QUESTION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise EngineError(done.stderr.strip().removeprefix("bufferscope-agent: "))
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise EngineError(f"{' '.join(command)}: not JSON: {error}") from error


def _ask(stdin: IO[bytes], request: bytes) -> None:
    try:
        with stdin:
            stdin.write(request)
    except BrokenPipeError as error:
        raise EngineError("the agent ended before it received a request") from error
