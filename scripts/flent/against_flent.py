"""Compare the values that bufferscope imports from Flent's data files with those that Flent prints.

    python scripts/flent/against_flent.py DIRECTORY [--most 200] [--each]

Every `.flent.gz` under DIRECTORY (or, with --most, as many of them, evenly spread) is imported, and given to
`flent --format=summary`. Compared are the goodput of each entry and of all flows with Flent's averages of the same
series, and, under load (`--data-cutoff`), the mean, the median and the 99th percentile of each series of round trips.
Flent's are of the answers that arrived under load, and so are these here; the metrics of bufferscope are of the probes
that were sent under load. Two values agree if they differ by at most 1 %, or by what Flent's two decimals leave open.
--each prints the others.
"""

import argparse
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from bufferscope.base.errors import InputError
from bufferscope.interop.external_runs import traffic_name
from bufferscope.interop.importing import content
from bufferscope.interop.importing.conversion import import_file
from bufferscope.interop.importing.flent import series as naming
from bufferscope.interop.importing.flent.file import DataFile
from bufferscope.metrics.window import Window
from bufferscope.stats.estimate import percentile
from bufferscope.store.run import Run

SHARE = 0.01
ROUNDING = 0.005
ROW = re.compile(r" (?P<series>.+?) +: +(?P<mean>\S+) +(?P<median>\S+) +(?P<p99>\S+) .*")


@dataclass(frozen=True)
class Pair:
    """One quantity, from bufferscope and from Flent."""

    quantity: str
    """`goodput`, `total`, `mean`, `median` or `99th`."""
    name: str
    ours: float
    flents: float

    @property
    def agrees(self) -> bool:
        """Whether both are the same within the tolerance."""
        return abs(self.ours - self.flents) <= SHARE * abs(self.flents) + ROUNDING


@dataclass(frozen=True)
class Compared:
    """A file, its kind, and its pairs; without pairs, the reason."""

    file: Path
    kind: str
    pairs: Sequence[Pair]
    refused: str = ""


def summary(file: Path, *options: str) -> dict[str, tuple[float, float, float]]:
    """Flent's values for each series: mean, median and 99th percentile; NaN for a missing value."""
    program = [shutil.which("flent")] if shutil.which("flent") else [sys.executable, "-m", "flent"]
    command = [*map(str, program), "--format=summary", *options, "-i", str(file)]
    return parsed(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def parsed(text: str) -> dict[str, tuple[float, float, float]]:
    """The rows of a summary."""
    rows = (ROW.fullmatch(line) for line in text.splitlines())
    return {row["series"]: (_number(row["mean"]), _number(row["median"]), _number(row["p99"])) for row in rows if row}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def compare(file: Path, directory: Path) -> Compared:
    """A file, read by both."""
    try:
        whole = DataFile(content.parsed(content.read(file)[1]))
    except (InputError, content.Unusable) as error:
        return Compared(file, "unreadable", (), str(error))
    kind = f"{whole.metadata.get('NAME')}, version {whole.version}"
    try:
        run = import_file(file, directory)
    except InputError as error:
        return Compared(file, kind, (), str(error))
    window = Window.of(run)
    began_s = datetime.fromisoformat(run.meta["started"]).timestamp()
    start_s = began_s + (window.start_ns - whole.t0_ns) / 1e9
    cut = f"--data-cutoff={start_s:.6f},{start_s + window.seconds:.6f}"
    printed = summary(file)
    if not printed:
        return Compared(file, kind, (), "Flent prints nothing of it")
    pairs = [*_goodput(run, whole, printed), *_round_trips(run, whole, summary(file, cut))]
    return Compared(file, kind, [pair for pair in pairs if not math.isnan(pair.flents)])


def _goodput(run: Run, file: DataFile, flents: dict[str, tuple[float, float, float]]) -> Iterator[Pair]:
    entries: dict[str, float] = {}
    for name, (mean, _, _) in flents.items():
        series = file.series(name)
        if naming.kind_of(series, file) is naming.SeriesKind.RATE:
            test = traffic_name(str(file.metadata.get("NAME")))
            up = naming.is_upload(series, test) is not False
            entry = naming.flow_name(series, test, up=up)
            entries[entry] = entries.get(entry, 0.0) + mean
    for entry, mean in entries.items():
        if f"goodput.{entry}_mbit" in run.metrics:
            yield Pair("goodput", entry, run.metrics[f"goodput.{entry}_mbit"], mean)
    if entries:
        yield Pair("total", "all flows", run.metrics["goodput.total_mbit"], sum(entries.values()))


def _round_trips(run: Run, file: DataFile, flents: dict[str, tuple[float, float, float]]) -> Iterator[Pair]:
    window = Window.of(run)
    arrived_ns = pl.col("sent_ns") + pl.col("rtt_ns")
    arrived = run.probes.filter((arrived_ns > window.start_ns) & (arrived_ns < window.end_ns))
    for name, (mean, median, p99) in flents.items():
        series = file.series(name)
        if naming.kind_of(series, file) is not naming.SeriesKind.ROUND_TRIPS:
            continue
        probe = naming.probe_name(series, traffic_name(str(file.metadata.get("NAME"))))
        own = (arrived.filter(pl.col("probe") == probe)["rtt_ns"] / 1e6).to_numpy()
        if len(own):
            yield Pair("mean", name, float(own.mean()), mean)
            yield Pair("median", name, percentile(own, 50), median)
            yield Pair("99th", name, percentile(own, 99), p99)


QUANTITIES = ("goodput", "total", "mean", "median", "99th")


def table(found: Sequence[Compared]) -> str:
    """How many pairs agree, by the kind of file, as Markdown."""
    lines = [
        "| test, format | files | not compared | " + " | ".join(QUANTITIES) + " |",
        "| --- | ---: | ---: | " + " | ".join("---:" for _ in QUANTITIES) + " |",
    ]
    kinds = Counter(each.kind for each in found)
    for kind in [*sorted(kinds), "all"]:
        own = [each for each in found if kind in (each.kind, "all")]
        cells = [str(len(own)), str(sum(bool(each.refused) for each in own))]
        for quantity in QUANTITIES:
            pairs = [pair for each in own for pair in each.pairs if pair.quantity == quantity]
            cells.append(f"{sum(pair.agrees for pair in pairs)} of {len(pairs)}")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(files: Sequence[Path], most: int | None) -> Sequence[Path]:
    """At most as many of the files, at equal distances."""
    if most is None or len(files) <= most:
        return files
    return [files[place * len(files) // most] for place in range(most)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--most", type=int, help="compare at most so many files")
    parser.add_argument("--each", action="store_true", help="print every pair that does not agree")
    given = parser.parse_args(arguments)
    files = spread(sorted(given.directory.rglob("*.flent*")), given.most)
    found = []
    for file in files:
        with tempfile.TemporaryDirectory() as directory:
            found.append(compare(file, Path(directory)))
        if given.each and found[-1].refused:
            print(f"{file}: {found[-1].refused}")
        for pair in found[-1].pairs:
            if given.each and not pair.agrees:
                print(f"{file}: {pair.quantity} of {pair.name}: {pair.ours:.6g}; Flent: {pair.flents:.6g}")
    print(table(found))


if __name__ == "__main__":
    main()
