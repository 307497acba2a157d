"""What `rrdtool fetch FILE AVERAGE` prints of Smokeping's databases: a row for each step, with all of its pings.

Smokeping sorts the round trips of a step, so the order of the probes in it is lost: they are taken to have been sent at
equal intervals. It puts the lost ones at both ends of the row (`rrdupdate_string` of its probes/base.pm) and counts
them in `loss`, also if all of them are lost. RRDtool computes a step from all rounds of pings that touch it: then
`loss` is no whole number, and the values are means. The same holds for what is older than the finest archive.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bufferscope.interop.importing import budget
from bufferscope.interop.importing.content import Unusable, lines
from bufferscope.interop.importing.result import Probe, Reading
from bufferscope.interop.importing.values import NANOSECONDS, milliseconds

FIRST_LINES = 20_000
_PING = re.compile(r"ping\d{1,3}")
_ROW = re.compile(r"(\d{1,12}):((?: +\S{1,40})+)")
LOSS = "loss"
USUAL_STEP_S = 300
"""Smokeping's default step, also taken for a single row."""
WHOLE = 0.01
"""A count that is farther from a whole number is a mean."""


def recognises(content: Any) -> bool:
    """Whether text is what RRDtool prints of Smokeping's data."""
    return len(_pings(_header(content[:FIRST_LINES]))) > 0


def read(content: Any) -> Reading:
    """The pings as probes; raises `Unusable`."""
    columns = _header(content)
    pings = _pings(columns)
    loss = columns.index(LOSS) if LOSS in columns else None
    rows: list[tuple[int, _Row]] = []
    for line in lines(content):
        if found_row := _ROW.fullmatch(line.strip()):
            values = found_row[2].split()
            if len(values) != len(columns):
                raise Unusable(f"the row of {found_row[1]}: found {len(values)} values; expected {len(columns)}")
            budget.current().records(len(pings))
            lost = None if loss is None else _number(values[loss], "pings")
            rows.append((int(found_row[1]), _Row([_rtt_ns(values[index]) for index in pings], lost)))
    times = sorted(time for time, _ in rows)
    step_s = min((b - a for a, b in pairwise(times) if b > a), default=USUAL_STEP_S)
    step_ns = step_s * NANOSECONDS // max(1, len(pings))
    probes: list[Probe] = []
    for time, row in rows:
        begin_ns = (time - step_s) * NANOSECONDS
        for index, rtt_ns in enumerate(row.pings):
            probes.append(Probe(len(probes), begin_ns + index * step_ns, rtt_ns))
    found = Reading("smokeping", title="Smokeping", clock=True)
    found.ping("ping", probes)
    found.warnings += _warnings([row for _, row in rows], step_s)
    return found


class _Row:
    """The pings of a step: what each took, or None if it was lost; empty if nothing was measured."""

    def __init__(self, rtts: Sequence[int | None], loss: float | None) -> None:
        """`rtts` are the values of the columns, and `loss` how many were lost, as far as that is known."""
        known = [rtt_ns for rtt_ns in rtts if rtt_ns is not None]
        lost = len(rtts) - len(known) if loss is None else min(round(loss), len(rtts))
        self.is_mixed = loss is not None and (abs(loss - lost) > WHOLE or lost != len(rtts) - len(known))
        if loss is None and not known:
            self.pings: list[int | None] = []
            return
        lower = lost // 2
        middle = rtts[lower : len(rtts) - (lost - lower)] if lost < len(rtts) else ()
        answered = [rtt_ns for rtt_ns in middle if rtt_ns is not None]
        self.pings = [*answered, *([None] * lost)]
        self.unknown = len(rtts) - len(self.pings)

    unknown = 0
    """Pings that were answered, without a value in the row."""


def _warnings(rows: Sequence[_Row], step_s: int) -> list[str]:
    made = [f"Smokeping sorts the pings of each step of {step_s} s: their order and their times in it are not known"]
    mixed, unknown = sum(row.is_mixed for row in rows), sum(row.unknown for row in rows)
    if mixed:
        made.append(
            f"{mixed} of {len(rows)} steps mix rounds of pings, so that their values are means, and the lost ones are "
            "rounded to whole pings"
        )
    if unknown:
        made.append(f"answered pings without a value, which are left out: {unknown}")
    if step_s > USUAL_STEP_S:
        made.append(
            f"a step of {step_s} s is longer than Smokeping's usual {USUAL_STEP_S} s: if the database has a finer "
            "archive, these values are means over several rounds (rrdtool fetch -r)"
        )
    return made


def _header(content: str) -> list[str]:
    """The names of the columns: the first line with words."""
    return next((line.split() for line in content.split("\n", 10) if line.strip()), [])


def _pings(columns: list[str]) -> list[int]:
    return [index for index, name in enumerate(columns) if _PING.fullmatch(name)]


def _rtt_ns(value: str) -> int | None:
    """A round trip in seconds; None for `nan`."""
    seconds = _number(value, "seconds")
    return None if seconds is None else milliseconds(seconds * 1000)


def _number(value: str, unit: str) -> float | None:
    """A number from 0 on; None for `nan`."""
    try:
        found = float(value.replace(",", "."))
    except ValueError:
        found = -1.0
    if found < 0 or found == float("inf"):
        raise Unusable(f"found {value!r:.40}; expected a number of {unit}")
    return None if found != found else found
