"""Columns of times and round trips, separated by commas, semicolons or tabs, as people export them.

The first line has the names of the columns: `time` (or `timestamp`, `t`) in seconds, since 1970 or since the start, or
as ISO 8601 has it; and `rtt_ms`, or `rtt_s`. An empty value is a lost probe. Without `time`, a row is a second.
"""

import csv
from datetime import UTC, datetime
from typing import Any

from bufferscope.interop.importing import budget
from bufferscope.interop.importing.content import Unusable, lines
from bufferscope.interop.importing.result import Probe, Reading
from bufferscope.interop.importing.values import NANOSECONDS, milliseconds, nanoseconds

TIMES = ("time", "timestamp", "t")
UNITS = {"rtt_ms": 1.0, "rtt_s": 1000.0}
SEPARATORS = ",;\t"
LOST = ("", "nan", "-", "null", "none", "u")
DATE_NS = 10**9 * NANOSECONDS
"""Times after September 2001 are dates."""


def recognises(content: Any) -> bool:
    """Whether the first line has a column of round trips."""
    return not UNITS.keys().isdisjoint(_header(content)[0])


def read(content: Any) -> Reading:
    """The rows as probes; raises `Unusable`."""
    names, separator = _header(content)
    rtt = next((names.index(name) for name in UNITS if name in names), None)
    time = next((names.index(name) for name in TIMES if name in names), None)
    if rtt is None:
        raise Unusable(f"found the columns {', '.join(names):.200}; expected one of {', '.join(UNITS)}")
    probes: list[Probe] = []
    allowed = budget.current()
    try:
        for line, row in enumerate(csv.reader(lines(content), delimiter=separator), start=1):
            if line == 1 or not row:
                continue
            allowed.records(1)
            if len(row) != len(names):
                raise Unusable(f"line {line}: found {len(row)} values; expected {len(names)}: {', '.join(names):.200}")
            sent_ns = len(probes) * NANOSECONDS if time is None else _time_ns(row[time], line)
            probes.append(Probe(len(probes), sent_ns, _rtt_ns(row[rtt], UNITS[names[rtt]], line)))
    except csv.Error as error:
        raise Unusable(f"not CSV: {error}") from None
    found = Reading("csv", title="Round trips", clock=bool(probes) and min(each.sent_ns for each in probes) > DATE_NS)
    found.ping("ping", probes)
    if time is None:
        found.warnings.append("no column of times: probes are taken to have been sent every second")
    return found


def _header(content: str) -> tuple[list[str], str]:
    line = content.partition("\n")[0][:1000].strip().lstrip("\ufeff")
    separator = max(SEPARATORS, key=line.count)
    return [name.strip().strip('"').lower() for name in line.split(separator)], separator


def _time_ns(value: str, line: int) -> int:
    try:
        found = nanoseconds(float(value.replace(",", ".")))
    except ValueError:
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            found = None
        else:
            found = nanoseconds((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if found is None:
        raise Unusable(f"line {line}: found the time {value!r:.40}; expected seconds, or as in 2026-01-31T12:00:00Z")
    return found


def _rtt_ns(value: str, to_ms: float, line: int) -> int | None:
    if value.strip().lower() in LOST:
        return None
    try:
        found = milliseconds(float(value.replace(",", ".")) * to_ms)
    except ValueError:
        found = None
    if found is None:
        raise Unusable(
            f"line {line}: found the round trip {value!r:.40}; expected a number, or nothing for a lost probe"
        )
    return found
