"""Measures the simulator's speed and memory, and those of ns-3 and htsim on the same scenario where they are at hand.

A hop is one packet fully sent on one link. Both count hops, so hops per CPU second compare, whatever either calls an
event. Then the simulator's speed with up to ten thousand flows, with and without samples of them and with one queueing
discipline or another, of TCP and of UDP, as tables in Markdown and as charts. `commit` adds a line to the table of
instructions per hop by commit; every other run compares with the last line, and fails if the simulator became slower.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from bufferscope import _core
from bufferscope.figures import pictures, style
from counting import COUNTED, ROOT, count_instructions

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BUILD = ["cargo", "build", "--quiet", "--release", "--locked", "--bin=bufferscope-bench"]
OURS = [str(TARGET / "release" / "bufferscope-bench")]
NS3 = ROOT / "target" / "ns3" / "bottleneck"
HTSIM = ROOT / "target" / "htsim" / "dumbbell"
DISCIPLINES = ["pfifo", "codel", "fq_codel", "cake"]
"""The simplest, and those with more to do for each packet: without a shaper, so that the link is the bottleneck."""
FAIR = ["fq_codel", "fq_pie", "sfq", "fq", "cake"]
"""Those that tell flows apart, whose cost may therefore depend on how many there are."""
OF_BOTH = ["pfifo", "codel"]
"""The disciplines that the program for ns-3 knows, too."""
RECORDED: list[str] = json.loads(_core.schema())["properties"]["record"]["default"]
WITHOUT_FLOWS = json.dumps([table for table in RECORDED if table != "flows"])
SAMPLES: Mapping[str, list[str]] = {
    "every 10 ms": [],
    "every second": ["sample.flows=1s"],
    "not recorded": [f"record={WITHOUT_FLOWS}"],
}
"""How often flows are sampled, and the overrides that say so."""


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    compared_seconds: int
    """For how many simulated seconds the simulators are compared."""
    compared_flows: Sequence[int]
    """With how many flows they are."""
    seconds: Mapping[int, int]
    """Numbers of flows, and for how many simulated seconds each is measured."""
    repeated: int
    """How often each is measured; the fastest counts, because other programs can only make a run slower."""


WHOLE = Extent(60, (1, 30), {1: 100, 10: 100, 30: 100, 100: 100, 1_000: 30, 10_000: 10}, repeated=3)
"""A measurement takes a quarter of a second or more, because the kernel may count CPU time in ticks of 4 ms."""
SHORT = Extent(2, (1,), {1: 1, 30: 1}, repeated=1)
"""Enough to see that everything works, but not to measure anything."""
CHART = ROOT / "target" / "speed-against-flows.svg"
CHARTS_OF_DISCIPLINES = {kind: ROOT / "target" / f"speed-of-disciplines-{kind}.svg" for kind in ("tcp", "udp")}
"""By the flows that are queued. TCP reacts to what a discipline drops; UDP makes the same work for all of them."""
NS3_PACKAGES = "libns3-dev pkg-config g++"

Measured = dict[str, Any]
Speed = float
"""Hops per CPU second; not a number where a run was too short for the kernel to count any CPU time."""
NONE = "-"
"""What a table has for a number that was not measured."""


def main() -> None:
    """Measure case after case and print a line as soon as it is there."""
    parts: Mapping[str, Callable[[Extent], None]] = {
        "simulators": compare,
        "htsim": beside_htsim,
        "samples": by_samples,
        "disciplines": by_discipline,
        "instructions": by_instructions,
        "commit": partial(by_instructions, add=True),
    }
    parser = argparse.ArgumentParser(description="Measures the simulator's speed and memory.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; all but the last by default")
    parser.add_argument("--short", action="store_true", help="try everything in some seconds, without a useful result")
    options = parser.parse_args()
    extent, chosen = SHORT if options.short else WHOLE, options.parts or list(parts)[:-1]
    if unknown := set(chosen) - set(parts):
        parser.error(f"unknown: {', '.join(sorted(unknown))}. Parts: {', '.join(parts)}")
    # With the extension's package, cargo has its crates already: for the other alone, they have fewer features.
    subprocess.run([*BUILD, "--package=bufferscope-python", "--package=bufferscope-bench"], cwd=ROOT, check=True)
    for part in chosen:
        parts[part](extent)


def by_samples(extent: Extent) -> None:
    """Print and draw the speed against the number of flows, with more and fewer samples of them."""
    series = {name: ["pfifo", *how] for name, how in SAMPLES.items()}
    _ = against_flows("TCP over pfifo, by samples of the flows", CHART, series, extent)


def by_discipline(extent: Extent) -> None:
    """Print and draw the speed against the number of flows, with one discipline or another."""
    names = ["pfifo", "codel", *FAIR]
    for kind, path in CHARTS_OF_DISCIPLINES.items():
        series = {qdisc: [qdisc, kind, *SAMPLES["every second"]] for qdisc in names}
        speeds = against_flows(f"{kind.upper()} by discipline, flows sampled every second", path, series, extent)
        print("\nIn per cent of pfifo with as many flows\n")
        print_beside_pfifo(speeds, lambda hops, pfifo: 100 * hops / pfifo)
        print("\nNanoseconds that a hop takes longer than with pfifo\n")
        print_beside_pfifo(speeds, lambda hops, pfifo: 1e9 / hops - 1e9 / pfifo)


def compare(extent: Extent) -> None:
    """Print the speed and the memory of both simulators."""
    with_ns3 = build_ns3()
    print("qdisc    flows  simulator          hops     events    CPU s  hops/CPU s    MiB")
    seconds = extent.compared_seconds
    for qdisc, flows in product(DISCIPLINES, extent.compared_flows):
        ours = measure([*OURS, qdisc, str(flows), str(seconds)])
        show("bufferscope", ours)
        if with_ns3 and qdisc in OF_BOTH:
            theirs = measure([str(NS3), f"--qdisc={qdisc}", f"--flows={flows}", f"--seconds={seconds}"])
            show("ns-3", theirs)
            times = written(speed(ours) / speed(theirs), ".0f")
            print(f"{'':16}{times} times as many hops per CPU second")
    print("MiB: growth of the largest resident set during the run.")


def beside_htsim(extent: Extent) -> None:
    """Print the CPU time of the same traffic on htsim: the median of alternating runs."""
    if "HTSIM" not in os.environ:
        print("\nTo compare with htsim: HTSIM=<a checkout of https://github.com/Broadcom/csg-htsim> make bench\n")
        return
    checkout = Path(os.environ["HTSIM"]).resolve()
    subprocess.run(["make", "--silent", "--directory", ROOT / "benches" / "htsim", f"HTSIM={checkout}"], check=True)
    print("\nCPU time with htsim, which has NewReno without SACK and without delayed ACKs, and records nothing\n")
    print_header(["bufferscope, s", "htsim, s", "CPU time", "CPU time per hop"])
    for flows, seconds in product(extent.compared_flows, [extent.compared_seconds]):
        commands = [[*OURS, "pfifo", str(flows), str(seconds)], [str(HTSIM), str(flows), str(seconds)]]
        rounds = [[measure(command) for command in commands] for _ in range(2 * extent.repeated + 1)]
        ours, theirs = (statistics.median(each[index]["cpu_s"] for each in rounds) for index in (0, 1))
        ours_hops, their_hops = (each["hops"] for each in rounds[0])
        times = [ours / theirs, (ours / ours_hops) / (theirs / their_hops)] if theirs else [math.nan] * 2
        print_row(flows, [f"{ours:.3f}", f"{theirs:.3f}", *(f"{written(ratio, '.2f')} times" for ratio in times)])


def by_instructions(extent: Extent, *, add: bool = False) -> None:
    """Print the instructions per hop, and add them to the table by commit if asked to."""
    count_instructions(OURS, COUNTED if extent is WHOLE else COUNTED[:1], add=add)


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
    printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    measured: Measured = json.loads(printed)
    return measured


def speed(measured: Measured) -> Speed:
    """The hops per CPU second of one case."""
    rate = measured["hops_per_cpu_s"]
    return math.nan if rate is None else float(rate)


def written(number: float, form: str) -> str:
    """A number of a table."""
    return format(number, form) if math.isfinite(number) else NONE


def show(simulator: str, m: Measured) -> None:
    """Print one line of the table."""
    mebibytes = m["peak_growth_kib"] / 1024
    print(
        f"{m['qdisc']:8} {m['flows']:5}  {simulator:12} {m['hops']:10} {m['events']:10} {m['cpu_s']:8.3f} "
        f"{written(speed(m), '.0f'):>11} {mebibytes:6.1f}",
        flush=True,
    )


def against_flows(
    subject: str, path: Path, series: Mapping[str, list[str]], extent: Extent
) -> dict[int, dict[str, Speed]]:
    """Print and draw the hops per CPU second against the number of flows, and return them by flows and series.

    Each series is a discipline with overrides.
    """
    print(f"\nMillion hops per CPU second ({subject})\n")
    print_header(series)
    speeds = {}
    for flows, seconds in extent.seconds.items():
        commands = {
            name: [*OURS, qdisc, str(flows), str(seconds), *overrides] for name, (qdisc, *overrides) in series.items()
        }
        speeds[flows] = fastest(commands, extent.repeated)
        print_row(flows, [written(hops / 1e6, ".2f") for hops in speeds[flows].values()])
    rows = [
        {"flows": flows, "series": name, "speed": hops / 1e6}
        for flows, row in speeds.items()
        for name, hops in row.items()
        if math.isfinite(hops)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(pictures.svg(chart(rows, subject, list(series)).to_dict() | {"config": style.config(style.LIGHT)}))
    print(f"\nDrawn: {path.relative_to(ROOT)}")
    return speeds


def print_beside_pfifo(speeds: Mapping[int, Mapping[str, Speed]], cell: Callable[[Speed, Speed], float]) -> None:
    """Print a table of whole numbers, each of which `cell` makes of a discipline's speed and pfifo's."""
    print_header(name for name in next(iter(speeds.values())) if name != "pfifo")
    for flows, row in speeds.items():
        print_row(flows, [written(cell(hops, row["pfifo"]), ".0f") for name, hops in row.items() if name != "pfifo"])


def print_header(columns: Iterable[str]) -> None:
    """Print the first lines of a table in Markdown."""
    names = ["flows", *columns]
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")


def print_row(flows: int, cells: Iterable[str]) -> None:
    """Print a line of a table in Markdown."""
    print(f"| {flows:,} | {' | '.join(cells)} |", flush=True)


def fastest(commands: Mapping[str, list[str]], repeated: int) -> dict[str, Speed]:
    """The hops per CPU second of the fastest of a few runs each, which alternate."""
    speeds = dict.fromkeys(commands, math.nan)
    for _ in range(repeated):
        for name, command in commands.items():
            # `fmax` rather than `max`: it prefers whatever is a number.
            speeds[name] = float(np.fmax(speeds[name], speed(measure(command))))
    return speeds


def chart(rows: list[dict[str, Any]], subject: str, order: list[str]) -> alt.Chart:
    """One line for each series."""
    title = alt.Title("Speed of the simulator against the number of flows", subtitle=f"100 Mbit/s; {subject}")
    flows = sorted({row["flows"] for row in rows})
    x = alt.X("flows:Q", scale=alt.Scale(type="log"), title="flows", axis=alt.Axis(values=flows, format="~s"))
    y = alt.Y("speed:Q", title="million hops per CPU second")
    color = alt.Color("series:N", sort=order, title=None)
    drawn: alt.Chart = alt.Chart(pl.DataFrame(rows)).mark_line(point=True).encode(x=x, y=y, color=color)
    return drawn.properties(title=title, width=style.WIDTH, height=style.HEIGHT)


main()
