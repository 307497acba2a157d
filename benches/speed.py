"""Measures the simulator's speed and memory, and those of ns-3 on the same scenario where it is installed.

A hop is one packet fully sent on one link. Both count hops, so hops per CPU second compare, whatever either calls an
event. Then the simulator's speed with up to ten thousand flows, with and without samples of them and with one queueing
discipline or another, as tables and as charts. Argument: the simulated seconds of the comparison, 60 by default.
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
DISCIPLINES = ["pfifo", "codel", "fq_codel", "cake"]
"""The simplest, and those with more to do for each packet: without a shaper, so that the link is the bottleneck."""
OF_BOTH = ["pfifo", "codel"]
"""The disciplines that the program for ns-3 knows, too."""
CASES = [(qdisc, flows) for qdisc in DISCIPLINES for flows in (1, 30)]
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
CHART_OF_DISCIPLINES = ROOT / "target" / "speed-of-disciplines.svg"
NS3_PACKAGES = "libns3-dev pkg-config g++"

Measured = dict[str, Any]


def main() -> None:
    """Measure case after case and print a line as soon as it is there."""
    compare()
    against_flows("pfifo, by samples of the flows", CHART, {name: ["pfifo", *how] for name, how in SAMPLES.items()})
    disciplines = {qdisc: [qdisc, *SAMPLES["every second"]] for qdisc in DISCIPLINES}
    against_flows("by discipline, flows sampled every second", CHART_OF_DISCIPLINES, disciplines)


def compare() -> None:
    """Print the speed and the memory of both simulators."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    with_ns3 = build_ns3()
    print("qdisc    flows  simulator          hops     events    CPU s  hops/CPU s    MiB")
    for qdisc, flows in CASES:
        ours = measure([*OURS, qdisc, str(flows), seconds])
        show("bufferscope", ours)
        if with_ns3 and qdisc in OF_BOTH:
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


def against_flows(subject: str, path: Path, series: Mapping[str, list[str]]) -> None:
    """Print and draw the hops per CPU second against the number of flows.

    Each series is a discipline with overrides.
    """
    print(f"\nHops per CPU second ({subject})")
    print("  flows" + "".join(f"{name:>15}" for name in series))
    rows = []
    for flows, seconds in SECONDS.items():
        commands = {
            name: [*OURS, qdisc, str(flows), str(seconds), *overrides] for name, (qdisc, *overrides) in series.items()
        }
        speeds = fastest(commands)
        print(f"{flows:7}" + "".join(f"{speed:15,}" for speed in speeds.values()), flush=True)
        rows += [{"flows": flows, "series": name, "speed": speed / 1e6} for name, speed in speeds.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text(pictures.svg(chart(rows, subject, list(series)).to_dict() | {"config": style.config(style.LIGHT)}))
    print(f"Drawn: {path.relative_to(ROOT)}")


def fastest(commands: Mapping[str, list[str]]) -> dict[str, int]:
    """The hops per CPU second of the fastest of a few runs each, which alternate."""
    speeds = dict.fromkeys(commands, 0)
    for _ in range(REPEATED):
        for name, command in commands.items():
            speeds[name] = max(speeds[name], int(measure(command)["hops_per_cpu_s"]))
    return speeds


def chart(rows: list[dict[str, Any]], subject: str, order: list[str]) -> alt.Chart:
    """One line for each series."""
    title = alt.Title("Speed of the simulator against the number of flows", subtitle=f"100 Mbit/s, CUBIC; {subject}")
    x = alt.X("flows:Q", scale=alt.Scale(type="log"), title="flows", axis=alt.Axis(values=list(SECONDS), format="~s"))
    y = alt.Y("speed:Q", title="million hops per CPU second")
    color = alt.Color("series:N", sort=order, title=None)
    drawn: alt.Chart = alt.Chart(pl.DataFrame(rows)).mark_line(point=True).encode(x=x, y=y, color=color)
    return drawn.properties(title=title, width=style.WIDTH, height=style.HEIGHT)


main()
