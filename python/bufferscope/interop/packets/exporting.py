"""The packets of stored runs as pcapng files.

A simulated run is simulated again (`replaying`), and its packets are written on the way. A kernel's packets are those
of the capture in the run's directory (`bufferscope run --capture`).
"""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bufferscope import _core
from bufferscope.base.errors import InputError, check_number, printable
from bufferscope.engines import engine_of
from bufferscope.engines.capture_points import VantagePoint, choose, in_simulator, on_kernel
from bufferscope.interop.replaying import Progress, check_same, refuse_changed, simulating
from bufferscope.store import CAPTURE, PARTIAL
from bufferscope.store.run import Run

FORMAT = "pcapng"
SNAPLEN, MOST_SNAPLEN = 128, 262_144
"""Bytes stored of each packet: all headers; and the most that readers accept."""


def export_packets(
    runs: Sequence[Run],
    directory: Path,
    *,
    ports: Sequence[str] = (),
    layers: Sequence[str] = (),
    snaplen: int = SNAPLEN,
    force: bool = False,
    progress: Progress = lambda _now_ns, _duration_ns: True,
) -> list[Path]:
    """Write one pcapng file per run into a directory; returns their paths.

    Without `ports` and `layers`, a file shows what `tcpdump` on the first sender would see. Without `layers`, ports
    that are named show their wire, and without `ports`, layers that are named are those of all ports. Raises
    `InputError` for names that do not exist, for runs whose packets can't be had, and if a file already exists, unless
    `force` is set; `EngineError` if the run can't be simulated.
    """
    check_number("snaplen", snaplen, 1, MOST_SNAPLEN)
    chosen = [(run, _how(run), choose(run.scenario, _points(run), ports, layers)) for run in runs]
    files = [directory / f"{run.id}.{FORMAT}" for run in runs]
    for file in files:
        if files.count(file) > 1:
            raise InputError(
                f"{file}: two of the runs have this name; export them one at a time, each with its own --out"
            )
        if file.exists() and not force:
            raise InputError(f"{file}: already exists; --force replaces it, --out writes elsewhere")
    for (run, write, shown), file in zip(chosen, files, strict=True):
        with _complete(file) as temporary:
            write(run, shown, temporary, snaplen, progress)
    return files


Write = Callable[[Run, list[VantagePoint], Path, int, Progress], None]
"""Writes the packets at these vantage points of a run into a file, at most so many bytes of each packet."""


def _how(run: Run) -> Write:
    """How to get at the packets of a run. Raises `InputError` if they can't be had."""
    if not engine_of(run.engine).replays:
        if capture_of(run).exists():
            return _select
        if engine_of(run.engine).captures:
            remedy = f"run it again with `bufferscope run {run.experiment} --engine {run.engine} --capture`"
        else:
            remedy = "only those of the simulator and of kernels can be exported"
        raise InputError(f"{run.id}: made by the engine {run.engine}, without a capture of its packets; {remedy}")
    refuse_changed(run)
    return _simulate


def _points(run: Run) -> list[VantagePoint]:
    return in_simulator(run.scenario) if engine_of(run.engine).replays else on_kernel(run.scenario)


def capture_of(run: Run) -> Path:
    """Where the capture of a run on a kernel is, if there is one."""
    return run.path / CAPTURE


def _select(run: Run, shown: list[VantagePoint], file: Path, snaplen: int, progress: Progress) -> None:
    """Copy these vantage points from the run's capture."""
    source = capture_of(run)
    kernel = run.meta["summary"].get("kernel", "unknown")
    comment = f"{run.experiment}, {run.id}: captured on Linux {kernel}; times are those of the run's records"
    interfaces = [(point.name, point.description) for point in shown]
    size = source.stat().st_size
    end_ns = run.scenario["duration_ns"]
    try:
        _core.select_packets(source, file, interfaces, snaplen, comment, end_ns, lambda done: progress(done, size))
    except _core.CaptureError as error:
        raise InputError(f"{source}: damaged: {printable(str(error))}; run the experiment again") from None


def _simulate(run: Run, shown: list[VantagePoint], file: Path, snaplen: int, progress: Progress) -> None:
    """Simulate the run again, and write what is seen at these vantage points."""
    comment = f"{run.experiment}, {run.id}: packets of a simulation; times are those of its records"
    interfaces = [(point.port, point.layer, point.name, point.description) for point in shown]
    with simulating(run):
        summary, _ = _core.capture(json.dumps(run.scenario), run.seed, file, interfaces, snaplen, comment, progress)
    check_same(run, summary, "packets")


@contextmanager
def _complete(file: Path) -> Iterator[Path]:
    """A temporary path that becomes the file if the block succeeds, and is removed if not."""
    temporary = file.with_name(f"{PARTIAL}{file.stem}-{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(file)
    except OSError as error:
        raise InputError(f"{file}: cannot write here: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
