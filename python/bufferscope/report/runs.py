"""Runs as a page shows them: where their files are, what made them, and how to make them again."""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from bufferscope.base.fmt import number, plural
from bufferscope.engines import default, engine_of
from bufferscope.store.live import LiveMeasurement, live_of
from bufferscope.store.metadata import sources

if TYPE_CHECKING:
    from bufferscope.store.run import Run

MOST_RUNS = 1000
"""The most runs that a page lists together: a population may have many more."""
MOST_OF_MANY = 12
"""The same for each experiment of a page of several."""


@dataclass(frozen=True)
class RunView:
    """One run: what it is and where its files are."""

    point: str
    seed: int
    href: str
    name: str
    wall_s: str
    rows: str


@dataclass(frozen=True)
class RunList:
    """The first of the runs of a page or of an experiment."""

    listed: tuple[RunView, ...]
    more: int
    """The number of the others."""

    @property
    def number(self) -> int:
        return len(self.listed) + self.more


@dataclass(frozen=True)
class WarningView:
    """A warning, and how many of the runs have it, in words."""

    text: str
    whom: str


def warnings(runs: Sequence["Run"]) -> tuple[WarningView, ...]:
    """Each different warning of the runs once, in the order in which they first appear."""
    counted = Counter(warning for run in runs for warning in dict.fromkeys(run.warnings))
    return tuple(WarningView(text, _whom(count, len(runs))) for text, count in counted.items())


def _whom(warned: int, runs: int) -> str:
    if warned == runs:
        return "the run" if runs == 1 else f"all {plural(runs, 'run')}"
    return f"{number(warned)} of {plural(runs, 'run')}"


def run_list(runs: Iterable[tuple[str, "Run"]], page: Path, most: int = MOST_RUNS) -> RunList:
    """Runs with the labels of their points, the first `most` of them; `page` is the page that links to them."""
    rest = iter(runs)
    listed = tuple(_view(label, run, page) for label, run in islice(rest, most))
    return RunList(listed, sum(1 for _ in rest))


def _view(label: str, run: "Run", page: Path) -> RunView:
    return RunView(
        point=label,
        seed=run.seed,
        href=quote(Path(os.path.relpath(run.path.resolve(), page.parent.resolve())).as_posix()) + "/",
        name=run.id,
        wall_s=f"{number(round(float(run.meta['wall_s']), 2))} s",
        rows=number(sum(run.meta["tables"].values())),
    )


def command(runs: Sequence["Run"], verb: str = "run", options: Sequence[str] = ("--engine",)) -> str:
    """The command that makes these runs of one experiment again, quoted for a shell; an option for each engine."""
    if live := live_of(runs[0].meta["summary"]):
        return shlex.join([*engine_of(runs[0].engine).read_by.split(), live["host"]])
    if sources(runs[0].meta):
        return _taking(runs)
    seeds = sorted({run.seed for run in runs})
    engines = dict.fromkeys(run.engine for run in runs)
    experiment = runs[0].meta["path"] or runs[0].experiment
    if experiment.startswith("-"):  # a file's name, which must not be taken for an option
        experiment = f"./{experiment}"
    words = ["bufferscope", verb, experiment, "--seed", str(seeds[0])]
    if len(seeds) > 1 or runs[0].meta["document"].get("repeat", 1) > 1:
        words += ["--repeat", str(len(seeds))]
    for option, engine in zip(options, engines, strict=True):
        if (option, engine) != ("--engine", default().name):
            words += [option, engine]
    words += _kernel(runs)
    for override in runs[0].meta["overrides"]:
        words += ["--set", override]
    return shlex.join(words)


def _taking(runs: Sequence["Run"]) -> str:
    """The command that reads the files of observed runs again."""
    files = dict.fromkeys(each["file"] for run in runs for each in run.meta["summary"]["observed"]["sources"])
    named = (f"./{file}" if file.startswith("-") else file for file in files)
    return shlex.join([*engine_of(runs[0].engine).read_by.split(), *named, "--name", runs[0].experiment])


def _kernel(runs: Sequence["Run"]) -> list[str]:
    """The option that selects the kernel of runs whose kernel can be chosen, if it is not of the default series."""
    for run in runs:
        series, release = engine_of(run.engine).default_kernel, str(run.meta["summary"].get("kernel", ""))
        if series and release and not release.startswith(f"{series}."):
            return ["--kernel", release]
    return []


def provenance(run: "Run") -> str:
    """Which program made a run, on which machine, and when."""
    meta = run.meta
    if live := live_of(meta["summary"]):
        return _measured(run, live)
    if sources(meta):
        return _origin(run)
    machine = meta["machine"]
    on = ", ".join(str(machine[key]) for key in ("system", "machine", "cpu") if machine.get(key))
    sampled = f"{number(meta['sampling']['achieved_ns'] / 1e6)} ms"
    if flows_ns := run.scenario.get("flows_interval_ns"):
        sampled += f" (flows: every {number(flows_ns / 1e6)} ms)"
    started = datetime.fromisoformat(meta["started"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    kernel = f" on Linux {meta['summary']['kernel']}" if "kernel" in meta["summary"] else ""
    return (
        f"bufferscope {meta['bufferscope']}, engine {meta['engine']} {meta['engine_version']}{kernel}, "
        f"sampled every {sampled}, started {started}, on {on}"
    )


def _measured(run: "Run", live: LiveMeasurement) -> str:
    """Which programs made a live measurement, on which kernels, and when."""
    started = datetime.fromisoformat(run.meta["started"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    ends = {"this machine": live["client"], "the server": live["server"]}
    told = [f"{end}: version {each.get('version', '?')}, Linux {each.get('kernel', '?')}" for end, each in ends.items()]
    error_ns = live["accuracy"].get("timing_error_p99_ns")
    exact = "" if error_ns is None else f"; probes left within {number(round(error_ns / 1000))} µs of their time (p99)"
    stamps = live["accuracy"].get("rx_stamps")
    by = f"; arrivals stamped by the {'kernel' if stamps == 'kernel' else 'program'}" if stamps else ""
    return f"measured {started}, to {live['host']} ({live['address']}); {'; '.join(told)}{by}{exact}"


def _origin(run: "Run") -> str:
    """Which program observed a run, and from which files it was read."""
    meta = run.meta
    origin = meta["summary"]["observed"]
    files = ", ".join(f"{each['file']} (SHA-256 {each['sha256'][:12]}…)" for each in origin["sources"])
    started = datetime.fromisoformat(meta["started"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    when = f"started {started}" if origin["clock"] else "at an unknown time"
    by = f"{origin['tool']} {origin['version']}".strip()
    return f"observed by {by}, {when}; read by bufferscope {meta['bufferscope']} from {files}"
