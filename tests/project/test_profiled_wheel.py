"""The profile-guided build of the wheel: what it simulates, and what it says if a program is missing."""

import os
import subprocess
import sys
from pathlib import Path

import workload

ROOT = Path(__file__).parents[2]


def test_the_profile_is_of_the_first_and_the_last_point_of_an_experiment() -> None:
    first, last = workload.brief("ucas-queue-sizes", 2)
    assert (first.scenario["duration_ns"], last.scenario["duration_ns"]) == (2_000_000_000,) * 2
    assert str(first) != str(last)
    workload.main(["ucas-queue-sizes"], seconds=1)


def test_without_llvm_profdata_it_says_how_to_install_it(tmp_path: Path) -> None:
    rustc = tmp_path / "rustc"
    rustc.write_text(f'#!/bin/sh\n[ "$1" = -vV ] && echo "host: here" || echo {tmp_path}\n')
    rustc.chmod(0o755)
    command = ["scripts/profiling/wheel.sh", "maturin", sys.executable]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "rustup component add llvm-tools" in done.stderr
