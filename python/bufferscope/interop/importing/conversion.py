"""Make a run of what a file says."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.base.errors import InputError, printable
from bufferscope.engines import imported
from bufferscope.interop import external_runs as observed
from bufferscope.interop.external_runs import Observation, TrafficEntry
from bufferscope.interop.importing import budget, content, kinds, live, phases
from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.result import Reading
from bufferscope.interop.importing.values import LATEST_S, LONGEST_NS, NANOSECONDS
from bufferscope.store import tables
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".gz", ".flent", ".json", ".txt", ".log", ".csv", ".out")
MOST_TESTS = 200
PROBES = ("probe", "seq", "sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns")
SAMPLES = ("flow", "t_ns", "delivered_bytes", "retransmits", "lost", "cwnd_bytes", "srtt_ns")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def import_file(path: Path, out: Path, kind: str | None = None, name: str | None = None) -> Run:
    """Store what a file of another program says as a run under `out`.

    `kind` is a format of `kinds.FORMATS`, by default detected from the content; `name` is the experiment's name, by
    default the file's. Raises `InputError` for a file that has no such format, is damaged, or has several tests.
    """
    found = import_all(path, out, kind, name, most=1)
    return found[0]


def import_all(
    path: Path, out: Path, kind: str | None = None, name: str | None = None, *, most: int = MOST_TESTS
) -> list[Run]:
    """Store each test that a file of another program has as a run under `out`, in the order of the file.

    Nothing is stored if the file has more than `most` tests, or if one of them can't be. Otherwise as `import_file`.
    """
    import polars  # noqa: F401 - so that the budget counts the memory that the library takes

    shown = printable(str(path))
    try:
        with budget.limits():
            stored, text = content.read(path)
            if kind is None and live.recognises(text):
                return [live.store(text, out, name)]
            tests = kinds.read_all(text, kind)
            if len(tests) > most:
                raise Unusable(f"found {len(tests)} tests; allowed: at most {most}")
            made = [_made(found, path, stored, name) for found in tests]
    except Unusable as error:
        raise InputError(f"{shown}: {error}") from None
    except MemoryError:
        raise InputError(f"{shown}: this machine has not enough memory left for it; import a part of it") from None
    return [observed.store(observation, records, out) for observation, records in made]


def _made(found: Reading, path: Path, stored: bytes, name: str | None) -> "tuple[Observation, dict[str, pl.DataFrame]]":
    """A test as `observed.store` takes it; raises `Unusable`."""
    phases.mark(found)
    started_ns, ended_ns = _span(found)
    if ended_ns - started_ns > LONGEST_NS:
        raise Unusable("found times that are more than a year apart")
    budget.current().tables(sum(len(each) for each in (*found.probes.values(), *found.flows.values())))
    title = found.title or f"{found.tool}: {path.name}"
    observation = Observation(
        name=name or _name(path),
        title=f"{title}, test {found.part} of the file" if found.part else title,
        engine=imported.ENGINE.name,
        tool=found.tool,
        version=found.version,
        sources=[observed.source(path, stored)],
        part=found.part,
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
    return observation, {"probes": _probes(found, started_ns), "flows": _flows(found, started_ns)}


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


def _moved(entry: TrafficEntry, found: Reading, started_ns: int, ended_ns: int) -> TrafficEntry:
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
    names = [name for name, probes in found.probes.items() for _ in probes]
    every = list(chain.from_iterable(found.probes.values()))
    return _frame("probes", PROBES, names, every, "sent_ns", started_ns)


def _flows(found: Reading, started_ns: int) -> "pl.DataFrame":
    names = [flow for flow, samples in found.flows.items() for _ in samples]
    every = list(chain.from_iterable(found.flows.values()))
    return _frame("flows", SAMPLES, names, every, "t_ns", started_ns)


def _frame(
    table: str, columns: Sequence[str], names: Sequence[str], records: Sequence[object], time: str, started_ns: int
) -> "pl.DataFrame":
    """A table of these columns, sorted by time; the first column has the names."""
    import polars as pl

    kinds_of = tables.columns(table)
    values = {columns[0]: pl.Series(columns[0], names, dtype=kinds_of[columns[0]])}
    for column in columns[1:]:
        begin = started_ns if column == time else 0
        found = [
            None if (value := getattr(record, column)) is None else value - begin if begin else value
            for record in records
        ]
        values[column] = pl.Series(column, found, dtype=kinds_of[column])
    return pl.DataFrame(values).sort(time, maintain_order=True)
