"""Counts the simulator's instructions per hop, and keeps a table of them by commit.

Instructions hardly depend on the machine, but they do on the build: without link-time optimisation there are a tenth
more. So each line of the table has its profile and compiler, and a count is judged only by a line of the same build.
"""

import csv
import datetime
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BY_COMMIT = ROOT / "benches" / "speed-by-commit.csv"
COUNTED = [("pfifo", 1), ("pfifo", 30), ("codel", 30), ("fq_codel", 30), ("cake", 30)]
"""The cases of the table by commit: a discipline, and a number of TCP flows."""
TOLERATED = 0.05
"""A library may take a few per cent more instructions, too."""
COUNTED_SECONDS = (10, 20)
"""Two durations. The difference between them has neither the beginning nor the end of a run."""
AS_COMMITTED = "release"
"""The profile without changes from the environment."""
CHANGES = "CARGO_PROFILE_RELEASE_"
WITHOUT_EFFECT = CHANGES + "DEBUG"
"""Debugging information changes no instruction."""

Build = Mapping[str, str]
"""The columns of the table that name a build."""


def count_instructions(program: Sequence[str], cases: Iterable[tuple[str, int]], *, add: bool = False) -> None:
    """Print the instructions per hop beside those of the last commit with this build, and add them to the table.

    If there are many more of them than before, the program fails, unless they are to be added.
    """
    if shutil.which("valgrind") is None:
        print("\nTo count instructions, on Debian: apt-get install valgrind\n")
        return
    built = build(os.environ, _compiler())
    with BY_COMMIT.open(newline="", encoding="utf-8") as file:
        before = last_of(built, list(csv.DictReader(file)))
    beside = f"beside {before['commit']}" if before else "of a build without a line in the table"
    print(f"\nInstructions per hop, {beside} ({', '.join(built.values())})\n")
    print("| qdisc, flows | instructions | change |\n|---|---|---|")
    counts: dict[str, float] = {}
    for qdisc, flows in cases:
        case = f"{qdisc} {flows}"
        counts[case] = _instructions_per_hop([*program, qdisc, str(flows)])
        change = counts[case] / float(before[case]) - 1 if before else None
        print(f"| {case} | {counts[case]:.0f} | {'-' if change is None else f'{change:+.1%}'} |", flush=True)
        if before and change is not None and change > TOLERATED and not add:
            raise SystemExit(f"{case} takes {change:.0%} more instructions per hop than {before['commit']}")
    if add:
        _add({"commit": _commit(), "date": _today(), **built, **{case: f"{n:.0f}" for case, n in counts.items()}})


def build(environment: Mapping[str, str], compiler: str) -> Build:
    """What decides how many instructions there are, apart from the sources: cargo's profile and flags, the compiler."""
    changes = [
        f"{name.removeprefix(CHANGES).lower().replace('_', '-')}={value}"
        for name, value in sorted(environment.items())
        if name.startswith(CHANGES) and name != WITHOUT_EFFECT
    ]
    flags = environment.get("RUSTFLAGS", "").split()
    return {"profile": " ".join([AS_COMMITTED, *changes, *flags]), "rustc": compiler}


def last_of(built: Build, lines: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    """The last line of the table with this build."""
    return next((line for line in reversed(lines) if built.items() <= line.items()), None)


def _compiler() -> str:
    """The version of the compiler, such as 1.95.0."""
    return _printed(["rustc", "--version"]).split()[1]


def _commit() -> str:
    return _printed(["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]).strip()


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def _printed(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _instructions_per_hop(command: Sequence[str]) -> float:
    """The instructions that callgrind counts for a hop in steady state, writing the records included."""
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    counted = []
    for seconds in COUNTED_SECONDS:
        done = subprocess.run(
            [*callgrind, *command, str(seconds)], cwd=ROOT, check=True, capture_output=True, text=True
        )
        collected = next(line for line in done.stderr.splitlines() if "Collected" in line)
        counted.append((int(collected.split()[-1]), json.loads(done.stdout)["hops"]))
    (fewer, first), (more, second) = counted
    return float((more - fewer) / (second - first))


def _add(line: Mapping[str, str]) -> None:
    with BY_COMMIT.open("a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, list(line), lineterminator="\n").writerow(line)
