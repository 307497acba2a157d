"""Measures the commands at which people wait: a run, a capture and a comparison, each with its page.

Each is a process of its own, as in a shell. It is run once before, so that its files are in the page cache and what
bufferscope keeps for later pages is there (docs/report.md). Then the fastest of several counts, because other programs
can only make it slower. A command prints what it found before it makes its page, so there are two times: until that
text is complete, and until the command ends. Usage: `python benches/commands.py [REPETITIONS | --short]`.
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
    "`run`, two runs and their page": ["run", EXPERIMENT, "--out", "two"],
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
        print("\n| command | seconds to its text | seconds to its end | CPU seconds |\n|---|---|---|---|")
        for name, command in COMMANDS.items():
            changed = SHORT if is_short and command[0] == "run" else []
            times = [timed([*command, *changed], directory) for _ in range(1 + repetitions)][1:]
            print(
                "|".join(["", f" {name} ", *(f" {min(each):.2f} " for each in zip(*times, strict=True)), ""]),
                flush=True,
            )


def prepare(directory: Path, changed: Sequence[str], repeat: int) -> None:
    """Make the runs that are compared, and the capture, of the connection without segmentation offload."""
    timed(["run", EXPERIMENT, *changed, "--repeat", str(repeat), "--out", "thirty", "--no-report"], directory)
    (source,) = (directory / "thirty").glob("*/*offload-off-*-s1-*")
    timed(["export", str(source), "--format", "pcapng", "--out", "captured"], directory)
    (capture,) = (directory / "captured").iterdir()
    capture.rename(directory / "minute.pcapng")


def timed(arguments: Sequence[str], directory: Path) -> tuple[float, float, float]:
    """The seconds until a command of bufferscope had printed its text, until it ended, and of CPU time.

    The CPU time includes that of its own processes.
    """
    command = [sys.executable, "-m", "bufferscope", *arguments]
    before, started_s = os.times(), time.perf_counter()
    text_s = 0.0
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("The page: "):
                text_s = time.perf_counter() - started_s
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds, after = time.perf_counter() - started_s, os.times()
    before_s, after_s = (each.children_user + each.children_system for each in (before, after))
    return text_s, seconds, after_s - before_s


if __name__ == "__main__":
    main()
