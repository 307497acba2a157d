"""Measures the simulator's speed and memory, and those of ns-3 on the same scenario where it is installed.

A hop is one packet fully sent on one link. Both count hops, so hops per CPU second compare, whatever either calls an
event. Argument: the simulated seconds, 60 by default.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OURS = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "bufferscope-sim", "--example", "bench", "--"]
NS3 = ROOT / "target" / "ns3" / "bottleneck"
CASES = [("pfifo", 1), ("pfifo", 30), ("codel", 1), ("codel", 30)]
NS3_PACKAGES = "libns3-dev pkg-config g++"

Measured = dict[str, Any]


def main() -> None:
    """Measure case after case and print a line as soon as it is there."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    with_ns3 = build_ns3()
    print("qdisc    flows  simulator          hops     events    CPU s  hops/CPU s    MiB")
    for qdisc, flows in CASES:
        ours = measure([*OURS, qdisc, str(flows), seconds])
        show("bufferscope", ours)
        if with_ns3:
            theirs = measure([str(NS3), f"--qdisc={qdisc}", f"--flows={flows}", f"--seconds={seconds}"])
            show("ns-3", theirs)
            print(f"{'':16}{ours['hops_per_cpu_s'] / theirs['hops_per_cpu_s']:.0f} times as many hops per CPU second")
    print("MiB: growth of the largest resident set during the run.")


def build_ns3() -> bool:
    """Build the program for ns-3; False where that is not installed."""
    has_pkg_config = shutil.which("pkg-config") is not None
    if not has_pkg_config or subprocess.run(["pkg-config", "--exists", "ns3-core"], check=False).returncode != 0:
        print(f"ns-3 is not installed; to compare with it, on Debian: apt-get install {NS3_PACKAGES}\n")
        return False
    subprocess.run(["make", "--silent", "--directory", ROOT / "benches" / "ns3"], check=True)
    return True


def measure(command: list[str]) -> Measured:
    """Run one case, which answers with one line of JSON."""
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    measured: Measured = json.loads(printed)
    return measured


def show(simulator: str, m: Measured) -> None:
    """Print one line of the table."""
    mebibytes = m["peak_growth_kib"] / 1024
    print(
        f"{m['qdisc']:8} {m['flows']:5}  {simulator:12} {m['hops']:10} {m['events']:10} {m['cpu_s']:8.3f} "
        f"{m['hops_per_cpu_s']:11} {mebibytes:6.1f}",
        flush=True,
    )


main()
