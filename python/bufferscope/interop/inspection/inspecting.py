"""From captures to a stored run."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bufferscope.base.errors import InputError
from bufferscope.interop.external_runs import experiment_name, store
from bufferscope.interop.inspection.clock import clock_tick_ns
from bufferscope.interop.inspection.observing import observation
from bufferscope.interop.inspection.reading import STANDARD_INPUT, Summary, read
from bufferscope.store.run import Run
from bufferscope.store.writing import prepared

ENDINGS = (".gz", ".pcap", ".pcapng", ".cap", ".dmp")


@dataclass(frozen=True)
class Inspection:
    """What captures show."""

    run: Run
    summary: Summary
    """Files, vantage points, packets by their kind, flows and pings."""


def inspect(
    files: Sequence[str | PathLike[str]],
    out: Path = Path("results"),
    name: str | None = None,
    hosts: Sequence[str] = (),
    ports: Sequence[int] = (),
    progress: Callable[[int], bool] | None = None,
) -> Inspection:
    """Read captures of packets, and store what they show as one run, `results/<name>/...`.

    Several files are several vantage points of the same network, or parts of one long capture. `hosts` and `ports`
    choose packets. Raises `InputError` for files that are no captures or show neither a TCP connection nor a ping.
    """
    names = [str(file) for file in files]
    if not names:
        raise InputError("found no captures; needed: one or more files, or - for standard input")
    if name is not None and experiment_name(name) != name:
        raise InputError(f"--name: found {name!r:.100}; allowed: letters, digits, '.', '_' and '-', as in home-evening")
    called = name or default_name(names[0])
    # On the file system of the run, so that tables are moved there and not copied.
    with prepared(out), tempfile.TemporaryDirectory(prefix=".inspect-", dir=out) as scratch:
        summary, sources = read(names, Path(scratch), hosts, ports, progress)
        tick_ns = clock_tick_ns(Path(scratch))
        run = store(observation(called, summary, sources, tick_ns), Path(scratch), out)
    return Inspection(run, summary)


def default_name(file: str) -> str:
    """A run's name, after its first file.

    >>> default_name("captures/home.pcapng.gz"), default_name("-")
    ('home', 'capture')
    """
    if file == STANDARD_INPUT:
        return "capture"
    stem = Path(file).name
    for ending in ENDINGS:
        stem = stem.removesuffix(ending)
    return experiment_name(stem)
