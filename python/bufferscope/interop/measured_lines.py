"""What is measured of a line, from a stored run, or from a file that `import` or `inspect` reads."""

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bufferscope.base.errors import InputError, printable
from bufferscope.interop.importing.conversion import import_file
from bufferscope.interop.inspection.connections import is_from_server
from bufferscope.interop.inspection.inspecting import inspect
from bufferscope.interop.inspection.reading import Summary
from bufferscope.store.finding import find, newest_live
from bufferscope.store.live import live_of
from bufferscope.store.reading import is_run
from bufferscope.store.run import Run
from bufferscope.store.verdict import Direction
from bufferscope.studies.modelling.measured import MeasuredLine, merged, of_live
from bufferscope.studies.modelling.others import GivenRates, of_other

MAGICS = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1", b"\x0a\x0d\x0d\x0a")
"""How captures begin: pcap with microseconds or nanoseconds, in both byte orders, and pcapng."""
GZIP = b"\x1f\x8b"
CAPTURED = "capture"


def measured_line(
    paths: Sequence[Path], out: Path, given: GivenRates | None = None
) -> tuple[MeasuredLine, tuple[Run, ...]]:
    """What these measurements show of a line together, and their runs; files are stored as runs under `out`.

    Raises `InputError` or `StoreError` for a path that is no measurement, or has too little for a model.
    """
    found = [_measured(path, out, given) for path in paths]
    return merged([line for line, _ in found]), tuple(run for _, run in found)


def _measured(path: Path, out: Path, given: GivenRates | None) -> tuple[MeasuredLine, Run]:
    if path.is_file():
        if _is_capture(path):
            inspection = inspect([path], out)
            summary = inspection.summary
            return of_other(inspection.run, _ways(summary), given, list(_ends(summary))), inspection.run
        return _of_run(import_file(path, out), given)
    return _of_run(_stored(path), given)


def _stored(path: Path) -> Run:
    """A run, the newest live measurement of a directory, or the only run of an experiment."""
    if is_run(path):
        return Run(path)
    try:
        runs = find(path) if path.is_dir() and any(is_run(entry) for entry in path.iterdir()) else []
    except OSError as error:
        raise InputError(f"{printable(str(path))}: {error.strerror}") from None
    if len(runs) == 1:
        return runs[0]
    return newest_live(path)


def _of_run(run: Run, given: GivenRates | None) -> tuple[MeasuredLine, Run]:
    if live_of(run.meta["summary"]):
        if given and given.mbit:
            raise InputError(f"{run.id}: found a live measurement; --down and --up are for files without rates")
        return of_live(run), run
    if run.engine == CAPTURED:
        raise InputError(
            f"{run.id}: a run of a capture does not have the direction of each flow; give the capture itself: "
            "bufferscope model FILE.pcap"
        )
    return of_other(run, None, given), run


def _is_capture(path: Path) -> bool:
    """Whether a file begins as a capture of packets; raises `InputError` for one that cannot be read."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(MAGICS[0]))
        if begin.startswith(GZIP):
            with gzip.open(path) as unpacked:
                begin = unpacked.read(len(MAGICS[0]))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{printable(str(path))}: {getattr(error, 'strerror', None) or error}") from None
    return begin in MAGICS


def _ways(summary: Summary) -> Mapping[str, Direction]:
    """The direction of each flow of a capture: a download comes from the end that is the server, by its port."""
    return {flow["name"]: "down" if is_from_server(flow["from"], flow["to"]) else "up" for flow in summary["flows"]}


def _ends(summary: Summary) -> Iterator[str]:
    """Which end of a capture is taken for the server."""
    if summary["flows"]:
        flow = max(summary["flows"], key=lambda each: each["delivered_bytes"] or 0)
        is_down = is_from_server(flow["from"], flow["to"])
        server = flow["from"] if is_down else flow["to"]
        what = "comes from it is the download" if is_down else "goes to it is the upload"
        yield f"By its port ({server['port']}), {server['address']} is taken for the server: what {what}."
