"""What `rrdtool fetch FILE AVERAGE` prints of Smokeping's databases: a row for each step, with all of its pings.

Smokeping sorts the round trips of a step (`ping1` is the shortest), so within a step the order of the probes is lost:
they are taken to have been sent at equal intervals. A value that is missing is a lost probe. RRDtool averages old
steps, so what is older than the finest archive are means of probes, not probes.
"""

import re
from itertools import pairwise
from typing import Any

from bufferscope.importing.content import Unusable
from bufferscope.importing.result import Probe, Reading
from bufferscope.importing.values import NANOSECONDS, milliseconds

FIRST_LINES = 20_000
_PING = re.compile(r"ping\d{1,3}")
_ROW = re.compile(r"(\d{1,12}):((?: +\S{1,40})+)")
UNKNOWN_STEP_S = 300
"""Smokeping's default step, for a single row."""


def recognises(content: Any) -> bool:
    """Whether a text is what RRDtool prints of Smokeping's data."""
    return len(_pings(_header(content[:FIRST_LINES]))) > 0


def read(content: Any) -> Reading:
    """The pings as probes; raises `Unusable`."""
    columns = _header(content)
    pings = _pings(columns)
    rows = []
    for line in content.splitlines():
        if row := _ROW.fullmatch(line.strip()):
            values = row[2].split()
            if len(values) != len(columns):
                raise Unusable(f"the row of {row[1]}: found {len(values)} values; expected {len(columns)}")
            rows.append((int(row[1]), [values[place] for place in pings]))
    times = sorted(time for time, _ in rows)
    step_s = min((b - a for a, b in pairwise(times) if b > a), default=UNKNOWN_STEP_S)
    step_ns = step_s * NANOSECONDS // max(1, len(pings))
    probes = []
    for time, values in rows:
        known = [_rtt_ns(value) for value in values]
        if any(rtt_ns is not None for rtt_ns in known):  # a step without any value was not measured
            begin_ns = (time - step_s) * NANOSECONDS
            probes += [Probe(0, begin_ns + place * step_ns, rtt_ns) for place, rtt_ns in enumerate(known)]
    found = Reading("smokeping", title="Smokeping", clock=True)
    found.ping("ping", [Probe(seq, each.sent_ns, each.rtt_ns) for seq, each in enumerate(probes)])
    found.warnings.append(
        f"Smokeping sorts the pings of each step of {step_s} s: their order and their times in it are not known"
    )
    return found


def _header(content: str) -> list[str]:
    """The names of the columns: the first line with words."""
    return next((line.split() for line in content.split("\n", 10) if line.strip()), [])


def _pings(columns: list[str]) -> list[int]:
    return [place for place, name in enumerate(columns) if _PING.fullmatch(name)]


def _rtt_ns(value: str) -> int | None:
    """A round trip in seconds; None for `nan`."""
    try:
        return milliseconds(float(value.replace(",", ".")) * 1000)
    except ValueError:
        raise Unusable(f"found {value!r:.40}; expected a number of seconds") from None
