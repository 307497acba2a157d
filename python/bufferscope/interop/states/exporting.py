"""The changes of TCP's state in stored runs, as qlog files: a directory for each run, with a file for each connection.

A simulated run is simulated again (`replaying`), and everything that changes is written on the way. Of a run on a
kernel, it is what can be derived from the samples in the table `flows`.
"""

import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope import _core
from bufferscope.base.errors import InputError, printable
from bufferscope.base.names import closest
from bufferscope.engines import engine_of
from bufferscope.interop.replaying import Progress, check_same, refuse_changed, simulating
from bufferscope.store import PARTIAL
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl

FORMAT, SUFFIX = "qlog", ".sqlog"
"""The name of the format, and the end of the name of a file that consists of JSON text sequences."""
SHOWN = 8
"""The most names of connections in a message."""


def export_states(
    runs: Sequence[Run],
    directory: Path,
    *,
    flows: Sequence[str] = (),
    sampled: bool = False,
    force: bool = False,
    progress: Progress = lambda _now_ns, _duration_ns: True,
) -> list[Path]:
    """Write the qlog files of each run into a directory inside of `directory`; returns the paths of all files.

    `flows` names the connections, such as `bulk/1`; without it, all that run over TCP. With `sampled`, events of
    simulated runs are derived from samples, too. Raises `InputError` for runs and connections that have no such state,
    and if there are files already, unless `force` is set; `EngineError` if a run can't be simulated.
    """
    for run in runs:
        _refuse(run, sampled)
    targets = [directory / run.id for run in runs]
    for target in targets:
        if targets.count(target) > 1:
            raise InputError(
                f"{target}: two of the runs have this name; export them one at a time, each with its own --out"
            )
        if _files(target) and not force:
            raise InputError(f"{target}: already has {SUFFIX} files; --force replaces them, --out writes elsewhere")
    written: list[Path] = []
    for run, target in zip(runs, targets, strict=True):
        is_sampled = sampled or not engine_of(run.engine).replays
        with _complete(target) as temporary:
            if is_sampled:
                _derive(run, temporary, flows)
            else:
                _simulate(run, temporary, flows, progress)
        written += _files(target)
    return written


def _files(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{SUFFIX}"))


def _refuse(run: Run, sampled: bool) -> None:
    engine = engine_of(run.engine)
    if engine.observes:
        raise InputError(
            f"{run.id}: made by the engine {run.engine}; only runs of the simulator and of kernels have a state of TCP"
        )
    if engine.replays and not sampled:
        refuse_changed(run)


def _simulate(run: Run, directory: Path, flows: Sequence[str], progress: Progress) -> None:
    """Simulate the run again, and write what changes."""
    description = "the changes of TCP's state in a simulation; times are those of the run's records"
    with simulating(run):
        summary, names, missing = _core.log_states(
            json.dumps(run.scenario), run.seed, directory, _title(run), description, list(flows), progress
        )
    check_same(run, summary, "states")
    if not names:
        raise _no_tcp(run)
    if missing:
        raise _unknown(run, missing[0], names)


def _derive(run: Run, directory: Path, flows: Sequence[str]) -> None:
    """Write what the samples of the run's connections show."""
    import polars as pl

    sampled = run.flows.filter(pl.col("state").is_not_null() & pl.col("cwnd_bytes").is_not_null())
    names = sampled["flow"].unique(maintain_order=True).to_list()
    if not names:
        raise _no_tcp(run)
    for flow in flows:
        if flow not in names:
            raise _unknown(run, flow, names)
    interval_ns = int(run.scenario.get("flows_interval_ns", run.meta["sampling"]["achieved_ns"]))
    description = f"derived from samples every {interval_ns / 1e6:g} ms: shorter states do not show"
    for (name,), rows in sampled.group_by("flow", maintain_order=True):
        flow = str(name)
        if not flows or flow in flows:
            host, of_client = _sender(run, flow)
            file = directory / f"{flow.replace('/', '-')}{SUFFIX}"
            title = f"{_title(run)}, {flow}"
            _core.log_samples(file, _samples(rows), interval_ns, title, description, flow, host, of_client)


Sample = tuple[int, tuple[int, int | None, int], tuple[int | None, int | None, int | None], str, tuple[int, int, int]]
"""A sample as `_core.log_samples` takes it."""


def _samples(rows: "pl.DataFrame") -> list[Sample]:
    return [
        (
            row["t_ns"],
            (row["cwnd_bytes"], row["ssthresh_bytes"], row["inflight_bytes"]),
            (row["srtt_ns"], row["min_rtt_ns"], row["pacing_bps"]),
            row["state"],
            (row["busy_ns"] or 0, row["rwnd_limited_ns"] or 0, row["sndbuf_limited_ns"] or 0),
        )
        for row in rows.sort("t_ns", maintain_order=True).iter_rows(named=True)
    ]


def _sender(run: Run, flow: str) -> tuple[str, bool]:
    """The host that sends the data of a connection, and whether it is the client."""
    name = flow.rpartition("/")[0]
    traffic = next(entry for entry in run.scenario["traffic"] if entry["name"] == name)
    # Only pages are requested by the host that gets them.
    return run.scenario["nodes"][traffic["from"]]["name"], traffic["kind"] != "web"


def _title(run: Run) -> str:
    return f"{run.experiment}, {run.id}"


def _no_tcp(run: Run) -> InputError:
    return InputError(f"{run.id}: no connection over TCP was recorded, so there is no state to export")


def _unknown(run: Run, flow: str, names: Sequence[str]) -> InputError:
    shown = ", ".join([*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])])
    return InputError(f"--flow: found {printable(flow)!r}{closest(flow, names)}; {run.id} has: {shown}")


@contextmanager
def _complete(target: Path) -> Iterator[Path]:
    """A temporary directory, whose files become those of the target if the block succeeds."""
    temporary = target.with_name(f"{PARTIAL}{target.name}-{secrets.token_hex(4)}")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        target.mkdir(exist_ok=True)
        for old in _files(target):
            old.unlink()
        for file in _files(temporary):
            file.replace(target / file.name)
    except OSError as error:
        raise InputError(f"{target}: cannot write here: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
