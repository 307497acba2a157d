"""Measures the simulator's speed and memory, and those of ns-3 on the same scenario where it is installed.

A hop is one packet fully sent on one link. Both count hops, so hops per CPU second compare, whatever either calls an
event. Then the simulator's speed with up to ten thousand flows, with and without samples of them, as a table and as a
chart. Argument: the simulated seconds of the comparison, 60 by default.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from bufferscope import _core
from bufferscope.figures import pictures, style

ROOT = Path(__file__).parents[1]
OURS = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "bufferscope-sim", "--example", "bench", "--"]
NS3 = ROOT / "target" / "ns3" / "bottleneck"
CASES = [("pfifo", 1), ("pfifo", 30), ("codel", 1), ("codel", 30)]
WITHOUT_FLOWS = json.dumps([table for table in _core.TABLES if table != "flows"])
SAMPLES: Mapping[str, list[str]] = {
    "every 10 ms": [],
    "every second": ["sample.flows=1s"],
    "not recorded": [f"record={WITHOUT_FLOWS}"],
}
"""How often flows are sampled, and the overrides that say so."""
SECONDS: Mapping[int, int] = {1: 30, 10: 30, 100: 30, 1_000: 10, 10_000: 5}
"""Numbers of flows, and for how many simulated seconds each is measured."""
REPEATED = 3
"""How often each is measured; the fastest counts, because other programs can only make a run slower."""
CHART = ROOT / "target" / "speed-against-flows.svg"
NS3_PACKAGES = "libns3-dev pkg-config g++"

Measured = dict[str, Any]


def main() -> None:
    """Measure case after case and print a line as soon as it is there."""
    compare()
    against_flows()


def compare() -> None:
    """Print the speed and the memory of both simulators."""
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


def against_flows() -> None:
    """Print and draw the hops per CPU second against the number of flows, for each way to sample them."""
    print("\nHops per CPU second (pfifo), with samples of the flows")
    print("  flows" + "".join(f"{samples:>15}" for samples in SAMPLES))
    rows = []
    for flows, seconds in SECONDS.items():
        command = [*OURS, "pfifo", str(flows), str(seconds)]
        speeds = {samples: fastest([*command, *overrides]) for samples, overrides in SAMPLES.items()}
        print(f"{flows:7}" + "".join(f"{speed:15,}" for speed in speeds.values()), flush=True)
        rows += [{"flows": flows, "samples": samples, "speed": speed / 1e6} for samples, speed in speeds.items()]
    CHART.parent.mkdir(exist_ok=True)
    CHART.write_text(pictures.svg(chart(rows).to_dict() | {"config": style.config(style.LIGHT)}))
    print(f"Drawn: {CHART.relative_to(ROOT)}")


def fastest(command: list[str]) -> int:
    """The hops per CPU second of the fastest of a few runs."""
    return max(int(measure(command)["hops_per_cpu_s"]) for _ in range(REPEATED))


def chart(rows: list[dict[str, Any]]) -> alt.Chart:
    """One line for each way to sample the flows."""
    title = alt.Title("Speed of the simulator against the number of flows", subtitle="100 Mbit/s, pfifo, CUBIC")
    x = alt.X("flows:Q", scale=alt.Scale(type="log"), title="flows", axis=alt.Axis(values=list(SECONDS), format="~s"))
    y = alt.Y("speed:Q", title="million hops per CPU second")
    color = alt.Color("samples:N", sort=list(SAMPLES), title="samples of the flows")
    drawn: alt.Chart = alt.Chart(pl.DataFrame(rows)).mark_line(point=True).encode(x=x, y=y, color=color)
    return drawn.properties(title=title, width=style.WIDTH, height=style.HEIGHT)


main()
