"""Runs that others observed: the records of a capture or of another program's test, stored like any other run.

Such a run has no experiment behind it, but everything after the records reads a scenario. So one is made that says no
more than what is known: the ends, the path between them as a link without a rate, and the traffic by its names. Its
time 0 is the first observation; `started` is the wall-clock time of that moment. Its `engine` is
one that observes, and `summary.observed` says which program observed it and which files it comes from. The scenario has
no key that was not observed (a congestion control, TCP's settings), except those that it must have: delays are 0 and
queues are `unknown`. Code downstream must not present these as measurements.
"""

import hashlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bufferscope import _core
from bufferscope.base.commit import commit
from bufferscope.base.errors import EngineError, InputError, StoreError, printable
from bufferscope.model.network import UNKNOWN
from bufferscope.model.scenario import Scenario
from bufferscope.store import FORMAT, tables
from bufferscope.store.live import LiveMeasurement
from bufferscope.store.metadata import Metadata, SourceFile, checked
from bufferscope.store.run import Run
from bufferscope.store.schema import Mismatch
from bufferscope.store.writing import directory_name, prepared, staged, write_metadata

if TYPE_CHECKING:
    import polars as pl

OF_PORTS = ("queues", "drops", "sojourns", "capacity")
"""The tables about what happened in ports, which cannot be observed from outside."""
PAIR = 2
"""Ends that a link joins; a router joins more of them."""
ROUTER = "network"
NEEDED: Mapping[str, Mapping[str, object]] = {
    "tcp": {"flows": 1},
    "udp": {"flows": 1, "payload_bytes": 1},
    "ping": {"payload_bytes": 56},
    "irtt": {"payload_bytes": 0},
}
"""What `run.json` must say of each kind of traffic, if it was not observed; for ping, its defaults."""
LONGEST_TITLE = 200


@dataclass(frozen=True)
class TrafficEntry:
    """An entry of the traffic: what its flows and probes are named after.

    Flows of the entry are named `<name>/<number>`, with numbers from 1; probes of ping and irtt are named `<name>`.
    Dots in a name make groups, as in `rrul.down.be`.
    """

    name: str
    kind: str
    """`tcp`, `udp`, `ping` or `irtt`."""
    sender: str
    receiver: str
    settings: Mapping[str, object] = field(default_factory=dict)
    """What was observed of it, by the keys of the scenario (`flows`, `interval_ns`, `payload_bytes`, `congestion`)."""
    start_ns: int = 0
    stop_ns: int | None = None
    """None: the end of the run."""


@dataclass(frozen=True)
class Observation:
    """What was observed, besides the tables."""

    name: str
    """The experiment's name: the run is stored in a directory that is called so."""
    title: str
    engine: str
    """The name of an engine that observes."""
    tool: str
    """The program that observed it."""
    version: str
    """The program's version; empty if it is not known."""
    sources: Sequence[SourceFile]
    """The files that it was read from."""
    duration_ns: int
    traffic: Sequence[TrafficEntry]
    part: int = 0
    """Which of the tests in its files it is, from 1 on; 0 if there is only one."""
    hosts: Sequence[str] = ("near", "far")
    """The names of the ends: two of them are joined by a link, more of them by links to a router."""
    warmup_ns: int = 0
    """The time before the load, which metrics leave out."""
    started: datetime | None = None
    """The wall-clock time of time 0, with a time zone; None if it was not recorded."""
    sample_interval_ns: int = 1_000_000_000
    """The time between two samples of a flow."""
    mss_bytes: int = _core.MSS_BYTES
    not_measured: Sequence[str] = ()
    """The tables that are empty because the program does not know their content, besides those about ports."""
    reported: Mapping[str, float | str] = field(default_factory=dict)
    """The program's own results that cannot be computed from the tables, by their names with units."""
    connections: Mapping[str, str] = field(default_factory=dict)
    """Names of the connections with the most data, by their flows."""
    warnings: Sequence[str] = ()
    notes: str | None = None
    figures: Sequence[str] = ("rtt", "rtt_cdf", "goodput")
    live: LiveMeasurement | None = None
    """How it went, if it is a live measurement."""
    wall_s: float | None = None
    """How long it took; None: what storing it takes."""
    machine: Mapping[str, str | int] = field(default_factory=dict)
    """The machine that observed it; empty if it is not known."""


def source(path: Path, content: bytes) -> SourceFile:
    """A file that a run is read from, as `run.json` has it."""
    return {"file": printable(path.name), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def experiment_name(text: str) -> str:
    """A name for the runs of a file, in characters that suit every file system.

    >>> experiment_name("my lab/März.flent.gz")
    'my-lab-M-rz.flent.gz'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:80] or "observed"


def traffic_name(text: str) -> str:
    """A name for traffic, from any text.

    >>> traffic_name("Ping (ms) ICMP 192.0.2.1")
    'ping-ms-icmp-192.0.2.1'
    """
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:80] or "traffic"


def store(observation: Observation, records: "Mapping[str, pl.DataFrame] | Path", out: Path) -> Run:
    """Store an observed run under `out`, completely or not at all, and return it.

    `records` are tables by their names, or a directory of Parquet files called after them. The columns must be those of
    `bufferscope.TABLES` (frames may have only some of them; the others are null), times integer nanoseconds since the
    first observation. Tables that are not given are stored empty.

    A run that was read from the same files before is replaced. Raises `InputError` if the tables are not such tables or
    `out` can't be written, and `EngineError` if writing fails later.
    """
    clock = time.perf_counter(), time.process_time()
    scenario = _scenario(observation)
    digest = {**scenario, "observed": [each["sha256"] for each in observation.sources]}
    if observation.part:
        digest["part"] = observation.part
    directory = out / observation.name / directory_name({}, observation.engine, 0, digest)
    try:
        with prepared(directory.parent), staged(directory) as staging:
            rows = _write(records, staging)
            write_metadata(staging, _metadata(observation, scenario, rows, clock))
    except OSError as error:
        raise EngineError(f"cannot write {error.filename or directory}: {error.strerror}") from None
    return Run(directory)


def _scenario(observation: Observation) -> Scenario:
    """A scenario that says what is known, and what `run.json` must have."""
    duration_ns = max(1, observation.duration_ns)
    several = len(observation.hosts) > PAIR
    nodes = [*observation.hosts, *([ROUTER] if several else [])]
    ends = [[n, len(nodes) - 1] for n in range(len(observation.hosts))] if several else [[0, 1]]
    known = {
        "duration_ns": duration_ns,
        "warmup_ns": min(observation.warmup_ns, duration_ns),
        "sample_interval_ns": max(1, observation.sample_interval_ns),
        "nodes": [{"name": name, "tcp": {}} for name in nodes],
        "links": [_link(f"path-{nodes[near]}" if several else "path", [near, far]) for near, far in ends],
        "traffic": [_traffic(entry, nodes, duration_ns) for entry in observation.traffic],
    }
    return cast(Scenario, known)


def _link(name: str, ends: Sequence[int]) -> dict[str, object]:
    port = {"rate": None, "delay_ns": 0, "overhead_bytes": 0, "queue": {"qdisc": UNKNOWN}}
    return {"name": name, "ends": list(ends), "forward": port, "reverse": port}


def _traffic(entry: TrafficEntry, nodes: Sequence[str], duration_ns: int) -> dict[str, object]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "from": nodes.index(entry.sender),
        "to": nodes.index(entry.receiver),
        "start_ns": entry.start_ns,
        "stop_ns": duration_ns if entry.stop_ns is None else entry.stop_ns,
        **NEEDED.get(entry.kind, {}),
        **entry.settings,
    }


def _title(observation: Observation) -> str:
    return printable(observation.title)[:LONGEST_TITLE]


def _metadata(
    observation: Observation,
    scenario: Scenario,
    rows: Mapping[str, int],
    clock: tuple[float, float],
) -> Metadata:
    """The content of `run.json`, checked as that of any run; raises `InputError`."""
    document = {"title": _title(observation), "notes": observation.notes, "figures": list(observation.figures)}
    unseen = {*observation.not_measured, *(table for table in OF_PORTS if not rows[table])}
    asked_ns = max(1, observation.sample_interval_ns)
    known = {
        "format": FORMAT,
        "bufferscope": _core.__version__,
        "commit": commit(),
        "experiment": observation.name,
        "title": _title(observation),
        "path": "",
        "document": document,
        "engine": observation.engine,
        "engine_version": " ".join(part for part in (observation.tool, observation.version) if part),
        "seed": 0,
        "point": {},
        "scenario": scenario,
        "started": _moment(observation.started).isoformat(timespec="milliseconds"),
        "wall_s": round(observation.wall_s or time.perf_counter() - clock[0], 6),
        "cpu_s": round(time.process_time() - clock[1], 6),
        "sampling": {"asked_ns": asked_ns, "achieved_ns": asked_ns},
        "mss_bytes": observation.mss_bytes,
        "machine": dict(observation.machine),
        "summary": {
            "not_measured": [table for table in _core.TABLES if table in unseen],
            "observed": {
                "tool": printable(observation.tool),
                "version": printable(observation.version),
                "sources": list(observation.sources),
                "clock": observation.started is not None,
                "reported": dict(observation.reported),
                **({"connections": dict(observation.connections)} if observation.connections else {}),
            },
            **({"live": observation.live} if observation.live else {}),
        },
        "warnings": [printable(warning) for warning in observation.warnings],
        "tables": rows,
    }
    try:
        return checked(known)
    except Mismatch as mismatch:
        raise InputError(f"{observation.name}: {mismatch}") from None


def _moment(started: datetime | None) -> datetime:
    """The wall-clock time of time 0; that of the import, if it was not recorded."""
    return datetime.now(UTC) if started is None else started.astimezone(UTC)


def _write(records: "Mapping[str, pl.DataFrame] | Path", staging: Path) -> dict[str, int]:
    """Write every table, but optional ones only if they are given; returns their numbers of rows."""
    given = _taken_over(records, staging) if isinstance(records, Path) else _written(records, staging)
    needed = [table for table in _core.TABLES if table not in _core.OPTIONAL_TABLES]
    for table in needed:
        if table not in given:
            tables.nothing(table).write_parquet(tables.file_of(staging, table))
    return {table: given.get(table, 0) for table in _core.TABLES if table in needed or table in given}


def _taken_over(directory: Path, staging: Path) -> dict[str, int]:
    """Move the files of a directory here."""
    rows = {}
    for table in _core.TABLES:
        file = tables.file_of(directory, table)
        if file.is_file():
            rows[table] = tables.rows(file, table)
            shutil.move(file, tables.file_of(staging, table))
    return rows


def _written(frames: "Mapping[str, pl.DataFrame]", staging: Path) -> dict[str, int]:
    """Write frames."""
    import polars as pl

    for table, frame in frames.items():
        if table not in _core.TABLES:
            raise StoreError(f"found a table {table!r}; expected {', '.join(_core.TABLES)}")
        columns = tables.columns(table)
        if unknown := [column for column in frame.columns if column not in columns]:
            raise StoreError(f"{table}: found the column {unknown[0]!r}; expected {', '.join(columns)}")
        whole = [
            (pl.col(column) if column in frame.columns else pl.lit(None)).cast(kind).alias(column)
            for column, kind in columns.items()
        ]
        try:
            frame.select(whole).write_parquet(tables.file_of(staging, table))
        except pl.exceptions.PolarsError as error:
            raise StoreError(f"{table}: {str(error).partition(chr(10))[0]:.200}") from None
    return {table: frame.height for table, frame in frames.items()}
