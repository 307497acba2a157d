"""`bufferscope shell` as tests use it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bufferscope.base.errors import EngineError
from bufferscope.engines.host import engine as host

PATIENCE_S = 60


def skip_without_network() -> None:
    """Skip the test where this kernel can't build a network with a rate."""
    try:
        found = host.capabilities()
    except EngineError as error:
        pytest.skip(str(error))
    if not found["qdiscs"]["htb"]:
        pytest.skip("this kernel has no sch_htb")


def words(*arguments: str, command: Sequence[str] = (), experiment: str = "lab.toml", on: str = "h1") -> list[str]:
    """The command line that runs `command` on a host."""
    start = [sys.executable, "-m", "bufferscope", "shell", experiment, "--on", on, *arguments]
    return [*start, "--", *command] if command else start


def call(
    directory: Path,
    *arguments: str,
    command: Sequence[str] = (),
    experiment: str = "lab.toml",
    on: str = "h1",
    given: str = "",
    patience_s: float = PATIENCE_S,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        words(*arguments, command=command, experiment=experiment, on=on),
        cwd=directory,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience_s,
    )


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """A command that runs Python code."""
    return (sys.executable, "-c", code, *arguments)


def home(up: tuple[str, str], down: tuple[str, str], delay: str = "0ms") -> str:
    """A home, its router, a provider and a server; the line has a rate and a tail-drop queue each way."""
    queue = '{{ rate = "{}", queue = {{ qdisc = "pfifo", limit = "{}" }} }}'
    return f"""
title = "A home, its router, a provider and a server"
duration = "10s"
[[link]]
name = "home"
ends = ["laptop", "router"]
[[link]]
name = "line"
ends = ["router", "provider"]
forward = {queue.format(*up)}
reverse = {queue.format(*down)}
[[link]]
name = "backbone"
ends = ["provider", "server"]
delay = "{delay}"
[[traffic]]
name = "ping"
kind = "ping"
from = "laptop"
to = "server"
"""
