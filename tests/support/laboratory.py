"""A small experiment, and the command line as tests use it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from dumbbell import dumbbell, pfifo

from bufferscope.base import programs

T = TypeVar("T")

SMALL = dumbbell(
    "A small lab",
    "2s",
    figures=["rtt"],
    access=None,
    bottleneck={"name": "line", "ends": ["h1", "h2"], "delay": "10ms", "queue": pfifo(20)},
    bulk={"flows": None, "congestion": "reno"},
    ping={"interval": None},
)

ROUTED = (
    SMALL.replace('ends = ["h1", "h2"]', 'ends = ["r1", "h2"]')
    + """
[[link]]
name = "access"
ends = ["h1", "r1"]
rate = "100mbit"
delay = "1ms"
"""
)
"""The small lab behind a router, where the queue fills up: a sender never overflows its own."""

IDLE = SMALL.split("[[traffic]]")[0] + "[[traffic]]" + SMALL.split("[[traffic]]")[2]
"""The small lab with only its ping."""

MORE = """
[[traffic]]
name = "call"
kind = "voip"
from = "h1"
to = "h2"

[[traffic]]
name = "stream"
kind = "udp"
from = "h1"
to = "h2"
rate = "100kbit"

[[expect]]
metric = "rtt.mean_ms"
says = "about 20 ms"
band = [15, 60]
"""
"""Further traffic, and an expectation, to be added to the small lab."""

SWEEP = """
[sweep]
"link.line.queue.limit" = ["10p", "20p", "40p"]
"""

ENDLESS = """
[sweep]
"duration" = ["1s", "86400s"]
"""
"""The first point is soon done; the second takes a long time."""

TABLES = (
    "probes",
    "flows",
    "queues",
    "drops",
    "transfers",
    "sojourns",
    "capacity",
    "estimates",
    "round_trips",
    "retransmissions",
    "one_way",
)


@dataclass(frozen=True)
class Answer:
    """The results of a command."""

    status: int
    out: str
    err: str


def write(directory: Path, text: str, name: str = "lab.toml") -> Path:
    """An experiment file."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def program(name: str) -> str:
    """The path of one of the programs of `programs.txt`, by any of its names; without the program, the test fails."""
    (listed,) = (program for program in programs.listed() if name in program.names)
    if found := next(filter(None, map(shutil.which, listed.names)), None):
        return found
    pytest.fail(f"{name} is not there: apt-get install {' '.join(listed.packages)}")


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program with its output in a pipe. It ends with the block, even if a test fails there."""
    process = subprocess.Popen(command, **{"stdout": subprocess.PIPE, "text": True, **options})
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


END_S = 10
"""The time that a program has to end by itself."""


def start(arguments: Sequence[str], directory: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """The command line in a process of its own, as `running` has it."""
    command = [sys.executable, "-m", "bufferscope", *arguments]
    return running(command, cwd=directory, stderr=subprocess.PIPE, env={**os.environ, "PYTHONWARNINGS": "error"})


OWN_NAMES = "mount -t tmpfs names /run && "
"""In a mount namespace of its own, so that the machine never sees the names that `ip netns` gives."""


AS_ROOT = ("--map-root-user",)
"""As root of a user namespace."""
AS_THIS_USER = () if os.geteuid() == 0 else ("--map-current-user", "--keep-caps")
"""As this user with root's rights. As root of a user namespace, tcpdump fails to change to its own user."""


def isolated(command: str, options: Sequence[str] = AS_ROOT) -> subprocess.CompletedProcess[str]:
    """Run with root's rights where the machine's own network cannot be reached."""
    words = ["unshare", *options, "--net", "--mount", "sh", "-c", OWN_NAMES + command]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


ATTEMPTS = 6
"""The number of disturbed measurements after which a test gives up."""


def until_undisturbed(measure: Callable[[], tuple[bool, str]]) -> None:
    """Repeat a measurement in real time that failed while this machine disturbed it.

    `measure` returns whether the measurement succeeded and what disturbed it (empty if nothing did). An undisturbed
    measurement that does not succeed fails the test at once. One that is always disturbed fails it in the end.
    """
    for attempt in range(ATTEMPTS):
        came_out, disturbance = measure()
        if came_out:
            return
        assert disturbance, "it does not come out, and nothing disturbed it"
        print(f"disturbed, attempt {attempt + 1} of {ATTEMPTS}: {disturbance}", file=sys.stderr)
    pytest.fail(f"disturbed by the machine {ATTEMPTS} times; at last: {disturbance}")


def first_undisturbed(measure: Callable[[], tuple[T, Sequence[str]]], attempts: int) -> T:
    """The first measurement that nothing disturbed; skips the test if there is none.

    `measure` returns what it measured, and what disturbed that. This is for measurements whose results are of no use if
    they were disturbed: those of a browser, and of programs that do not notice it.
    """
    for attempt in range(attempts):
        measured, disturbances = measure()
        if not disturbances:
            return measured
        print(f"disturbed, attempt {attempt + 1} of {attempts}: {disturbances[0]}", file=sys.stderr)
    pytest.skip(f"disturbed {attempts} times; at last: {disturbances[0]}")


def files(directory: Path) -> dict[str, bytes]:
    """Every file below a directory by its relative path."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flipped(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])


DAMAGE = [(truncated, "bytes"), (flipped, "SHA-256"), (Path.unlink, "not there")]
"""Ways to damage a table's file, each with a word of the message about it."""


CHECKED = [f"{protocol}.check_checksum:TRUE" for protocol in ("tcp", "ip", "udp")]


def tshark(file: Path, shown: str, *fields: str) -> list[list[str]]:
    """The fields of the packets that pass a display filter."""
    options = [word for check in CHECKED for word in ("-o", check)]
    wanted = [word for field in fields for word in ("-e", field)]
    command = [program("tshark"), "-r", str(file), *options, "-Y", shown, "-T", "fields", *wanted]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "error" not in answer.stderr.lower(), answer.stderr
    return [line.split("\t") for line in answer.stdout.splitlines()]
