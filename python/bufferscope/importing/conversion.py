"""Make a run of what a file says."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope import observed
from bufferscope.errors import InputError, printable
from bufferscope.importing import content, kinds
from bufferscope.importing.content import Unusable
from bufferscope.importing.result import Reading
from bufferscope.importing.values import LATEST_S, LONGEST_NS, NANOSECONDS
from bufferscope.observed import Entry, Observation
from bufferscope.store import tables
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".gz", ".flent", ".json", ".txt", ".log", ".csv", ".out")
PROBES = ("probe", "seq", "sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns")
SAMPLES = ("flow", "t_ns", "delivered_bytes", "retransmits", "lost", "cwnd_bytes", "srtt_ns")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def import_file(path: Path, out: Path, kind: str | None = None, name: str | None = None) -> Run:
    """Store what a file of another program says as a run under `out`.

    `kind` is a format of `kinds.FORMATS`, by default that which the content shows; `name` is the experiment's name, by
    default the file's. Raises `InputError` for a file that is none of these, or damaged.
    """
    stored, text = content.read(path)
    try:
        found = kinds.read(text, kind)
        started_ns, ended_ns = _span(found)
        if ended_ns - started_ns > LONGEST_NS:
            raise Unusable("found times that are more than a year apart")
        records = {"probes": _probes(found, started_ns), "flows": _flows(found, started_ns)}
    except Unusable as error:
        raise InputError(f"{printable(str(path))}: {error}") from None
    observation = Observation(
        name=name or _name(path),
        title=found.title or f"{found.tool}: {path.name}",
        engine="import",
        tool=found.tool,
        version=found.version,
        sources=[observed.source(path, stored)],
        duration_ns=ended_ns - started_ns,
        traffic=[_moved(entry, found, started_ns, ended_ns) for entry in found.traffic],
        warmup_ns=0 if found.loaded_ns is None else max(0, found.loaded_ns - started_ns),
        started=EPOCH + timedelta(microseconds=started_ns // 1000) if found.clock else None,
        sample_interval_ns=found.interval_ns,
        mss_bytes=found.mss_bytes,
        reported=found.reported,
        warnings=found.warnings,
        figures=_figures(found),
    )
    return observed.store(observation, records, out)


def _name(path: Path) -> str:
    name = path.name
    while stem := next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end) and name != end), None):
        name = stem
    return observed.experiment_name(name)


def _span(found: Reading) -> tuple[int, int]:
    """The times of the first and of the last observation; raises `Unusable` without one, or for impossible years."""
    sent = [probe.sent_ns for probes in found.probes.values() for probe in probes]
    ends = [probe.sent_ns + (probe.rtt_ns or 0) for probes in found.probes.values() for probe in probes]
    sampled = [sample.t_ns for samples in found.flows.values() for sample in samples]
    if not sent and not sampled:
        raise Unusable(f"a file of {found.tool} without any result; was the test cut short?")
    first, last = min(chain(sent, sampled)), max(chain(ends, sampled))
    begin = min(first, first if found.begin_ns is None else found.begin_ns)
    end = last if found.end_ns is None else found.end_ns
    if begin < 0 or max(begin, end) > LATEST_S * NANOSECONDS:
        raise Unusable("found times before 1970 or after 2096; expected seconds since 1970, or since the start")
    return begin, end


def _moved(entry: Entry, found: Reading, started_ns: int, ended_ns: int) -> Entry:
    """The entry with its times: from its first observation to its last."""
    if entry.name in found.probes:
        times = [probe.sent_ns for probe in found.probes[entry.name]]
        return replace(entry, start_ns=min(times, default=started_ns) - started_ns)
    times = [
        sample.t_ns
        for flow, samples in found.flows.items()
        if flow.rpartition("/")[0] == entry.name
        for sample in samples
    ]
    last_ns = ended_ns if found.unloaded_ns is None else found.unloaded_ns
    start_ns, stop_ns = min(times, default=started_ns), min(last_ns, max(times, default=ended_ns))
    return replace(entry, start_ns=start_ns - started_ns, stop_ns=stop_ns - started_ns)


def _figures(found: Reading) -> tuple[str, ...]:
    probes = ("rtt", "rtt_cdf") if found.probes else ()
    windows = any(sample.cwnd_bytes is not None for samples in found.flows.values() for sample in samples)
    return (*probes, *(("goodput",) if found.flows else ()), *(("cwnd",) if windows else ()))


def _probes(found: Reading, started_ns: int) -> "pl.DataFrame":
    rows = (
        (name, probe.seq, probe.sent_ns - started_ns, probe.rtt_ns, probe.owd_up_ns, probe.owd_down_ns)
        for name, probes in found.probes.items()
        for probe in probes
    )
    return _frame("probes", PROBES, rows)


def _flows(found: Reading, started_ns: int) -> "pl.DataFrame":
    rows = (
        (flow, sample.t_ns - started_ns, *(getattr(sample, column) for column in SAMPLES[2:]))
        for flow, samples in found.flows.items()
        for sample in samples
    )
    return _frame("flows", SAMPLES, rows)


def _frame(table: str, names: Sequence[str], rows: Iterable[tuple[object, ...]]) -> "pl.DataFrame":
    """A table of these columns, sorted by time."""
    import polars as pl

    columns = tables.columns(table)
    time = "sent_ns" if table == "probes" else "t_ns"
    made = pl.DataFrame(list(rows), schema={name: columns[name] for name in names}, orient="row")
    return made.sort(time, maintain_order=True)
