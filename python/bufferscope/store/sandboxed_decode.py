"""Find out whether Parquet files of unknown origin can be decoded, in a separate process that is allowed to crash.

A damaged file can make the decoder fail in every way that a program can: errors, panics that are printed on standard
error before they can be caught, allocations that end the process. None of this affects the process that wants the
table.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PATIENCE_S = 120
"""The time after which the process is stopped; no table takes that long."""
_OWN_BYTES = 4 << 30
"""More address space than an interpreter with polars takes before it reads any file."""

_DECODE = """
import json, resource, sys
import polars
try:
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
except (OSError, ValueError):
    pass
for path in sys.argv[2:]:
    try:
        polars.read_parquet(path, glob=False)
        told = None
    except BaseException as error:
        told = str(error).partition("\\n")[0]
    print(json.dumps(told), flush=True)
"""


def memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def failures(files: Sequence[Path]) -> dict[Path, str]:
    """The files that can't be decoded within this machine's memory, each with the reason."""
    found: dict[Path, str] = {}
    waiting = list(files)
    while waiting:
        answers = _tried(waiting)
        found |= {file: told for file, told in zip(waiting, answers, strict=False) if told is not None}
        waiting = waiting[len(answers) :]
        if waiting:
            found[waiting.pop(0)] = "it makes the decoder crash"
    return found


def _tried(files: Sequence[Path]) -> list[str | None]:
    """The decoder's error for each file, or None; the list ends at the file at which the decoder crashed."""
    command = [sys.executable, "-P", "-c", _DECODE, str(memory_bytes() + _OWN_BYTES), *map(str, files)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
        told = done.stdout
    except subprocess.TimeoutExpired as late:
        told = late.stdout or b""
    return [json.loads(line) for line in told.splitlines(keepends=True) if line.endswith(b"\n")]
