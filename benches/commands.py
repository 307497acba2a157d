"""Measures the commands at which people wait: a run to its verdict and with its page, a capture, a comparison.

Each is a process of its own, as in a shell. It is run once before, so that its files are in the page cache and what
bufferscope keeps for later pages is there (docs/report.md). Then the fastest of several counts, because other programs
can only make it slower. Usage: `python benches/commands.py [REPETITIONS | --short]`.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

EXPERIMENT = "ucas-reproduce"
"""One flow and a ping for a minute over 10 Mbit/s, at two points: segmentation offload on and off."""
COMMANDS: Mapping[str, Sequence[str]] = {
    "`run`, to the verdict": ["run", EXPERIMENT, "--out", "two", "--no-report"],
    "`run`, with the page of its two runs": ["run", EXPERIMENT, "--out", "two"],
    "`inspect` one minute of 10 Mbit/s": ["inspect", "minute.pcapng"],
    "`compare` 30 runs": ["compare", f"thirty/{EXPERIMENT}"],
}
ARMS_REPEATED = 15
"""Repetitions of each of the two points that are compared."""
REPETITIONS = 5
SHORT = ["--set", "duration=10s"]
"""What `--short` changes: enough to see that everything works."""


def main() -> None:
    """Measure each command, and print its line at once."""
    is_short = sys.argv[1:] == ["--short"]
    repetitions = 1 if is_short else int(sys.argv[1]) if sys.argv[1:] else REPETITIONS
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        prepare(directory, SHORT if is_short else [], 2 if is_short else ARMS_REPEATED)
        print("\n| command | seconds | CPU seconds |\n|---|---|---|")
        for name, command in COMMANDS.items():
            changed = SHORT if is_short and command[0] == "run" else []
            times = [timed([*command, *changed], directory) for _ in range(1 + repetitions)][1:]
            seconds, cpu_s = map(min, zip(*times, strict=True))
            print(f"| {name} | {seconds:.2f} | {cpu_s:.2f} |", flush=True)


def prepare(directory: Path, changed: Sequence[str], repeat: int) -> None:
    """Make the runs that are compared, and the capture, of the connection without segmentation offload."""
    timed(["run", EXPERIMENT, *changed, "--repeat", str(repeat), "--out", "thirty", "--no-report"], directory)
    (source,) = (directory / "thirty").glob("*/*offload-off-*-s1-*")
    timed(["export", str(source), "--format", "pcapng", "--out", "captured"], directory)
    (capture,) = (directory / "captured").iterdir()
    capture.rename(directory / "minute.pcapng")


def timed(arguments: Sequence[str], directory: Path) -> tuple[float, float]:
    """How many seconds a command of bufferscope took, and how many of CPU time, together with its own processes."""
    command = [sys.executable, "-m", "bufferscope", *arguments]
    before, started_s = os.times(), time.perf_counter()
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - started_s, os.times()
    before_s, after_s = (each.children_user + each.children_system for each in (before, after))
    return seconds, after_s - before_s


if __name__ == "__main__":
    main()
