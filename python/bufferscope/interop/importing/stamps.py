"""Time stamps before the lines of ping: of `ping -D`, of `ts` from moreutils, of loops around `date`, of PowerShell."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from itertools import accumulate, pairwise

from bufferscope.interop.importing.values import NANOSECONDS

HOUR_NS = 3600 * NANOSECONDS
DAY_NS = 24 * HOUR_NS
HALF_DAY_S = 43_200
_PREFIX = re.compile(
    r"""^\[?(?:
      (?P<epoch>\d{9,11}(?:\.\d{1,9})?)
    | (?P<elapsed>\d{1,8}\.\d{3,9})
    | (?:(?P<date>\d{4}-\d\d-\d\d)[T ]
       | (?:[^\W\d_]{2,12}[.,]?[ ]+)?
         (?:(?P<month>[^\W\d_]{2,12})[.,]?[ ]+(?P<day>\d{1,2})|\d{1,2}[ ]+[^\W\d_]{2,12})[.,]?[ ]+
         (?:\d{4}[ ]+)?
       | \d{1,4}[/.-]\d{1,2}[/.-]\d{1,4},?[ ]+
      )?
      (?P<hours>\d{1,2}):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:[.,](?P<fraction>\d{1,9}))?
      (?:[ ]?(?P<half>[AaPp])\.?[Mm]\.?)?(?P<zone>Z|[ ]?[+-]\d\d:?\d\d)?
      (?:[ ]+[A-Z]{2,5}(?:[ ]+\d{4}|(?=[:,\]]))|[ ]+\d{4}(?=\]))?
    )\]?(?:[ ]?[-:|>]+(?=\s|$))?(?:[ \t]+|$)""",
    re.VERBOSE,
)
LONGEST_PREFIX = 80
EPOCH = date(1970, 1, 1).toordinal()
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
SOME_YEAR = 2024
"""For dates without a year; it has a 29 February."""
FEWEST, OFTEN = 5, 6
"""Stamps that are all alike, or of which one in six is before the last, count from the line before (`ts -i`)."""


class Epoch(Enum):
    """What a timestamp counts from."""

    DATE = "1970"
    CLOCK = "midnight"
    ELAPSED = "any moment"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A timestamp."""

    t_ns: int
    kind: Epoch
    is_whole: bool
    """Whether it is in whole seconds."""


def split(line: str) -> tuple[Stamp | None, str]:
    """A line's timestamp, if it has one, and the rest of the line."""
    found = _PREFIX.match(line[:LONGEST_PREFIX])
    if found is None:
        return None, line
    stamp = _stamp(found)
    return (None, line) if stamp is None else (stamp, line[found.end() :])


def _stamp(found: re.Match[str]) -> Stamp | None:
    for name, kind in (("epoch", Epoch.DATE), ("elapsed", Epoch.ELAPSED)):
        if value := found[name]:
            return Stamp(_nanoseconds(*value.partition(".")[::2]), kind, "." not in value)
    hours = int(found["hours"]) % 12 if found["half"] else int(found["hours"])
    afternoon_s = HALF_DAY_S if found["half"] in ("P", "p") else 0
    seconds = 3600 * hours + 60 * int(found["minutes"]) + int(found["seconds"]) + afternoon_s
    time_ns = _nanoseconds(str(seconds), found["fraction"] or "")
    try:
        if found["date"] and found["zone"]:
            midnight = datetime.fromisoformat(f"{found['date']}T00:00:00{_zone(found['zone'])}")
            return Stamp(round(midnight.timestamp()) * NANOSECONDS + time_ns, Epoch.DATE, not found["fraction"])
        return Stamp(_days(found) * DAY_NS + time_ns, Epoch.CLOCK, not found["fraction"])
    except ValueError:
        return None


def _days(found: re.Match[str]) -> int:
    """The number of a stamp's day, as far as it is written down; raises `ValueError` if there is no such day."""
    if found["date"]:
        return date.fromisoformat(found["date"]).toordinal() - EPOCH
    if found["month"] and (name := found["month"].lower()[:3]) in MONTHS:
        return date(SOME_YEAR, MONTHS.index(name) + 1, int(found["day"])).toordinal() - EPOCH
    return 0


def _zone(text: str) -> str:
    """A zone as Python reads it: `+01:00`."""
    sign, digits = text.strip()[:1], text.strip()[1:].replace(":", "")
    return "+00:00" if sign == "Z" else f"{sign}{digits[:2]}:{digits[2:]}"


def _nanoseconds(seconds: str, fraction: str) -> int:
    return int(seconds) * NANOSECONDS + int(fraction.ljust(9, "0"))


def on_one_axis(stamps: Sequence[Stamp]) -> list[int] | None:
    """The times of stamps on one axis, in the order of the lines; None if it is not known what they count from.

    Times of a clock go on after midnight. `ts -i` writes the time since the line before: such stamps do not grow.
    """
    if len({stamp.kind for stamp in stamps}) != 1:
        return None
    times = [stamp.t_ns for stamp in stamps]
    if stamps[0].kind is Epoch.DATE:
        return times
    falls = [before - after for before, after in pairwise(times) if after < before]
    if not falls:
        return None if len(times) >= FEWEST and len(set(times[1:])) == 1 else times
    if stamps[0].kind is Epoch.CLOCK and all(DAY_NS // 2 < fall < DAY_NS for fall in falls):
        return _after_midnight(times)
    return list(accumulate(times)) if max(times) < HOUR_NS and OFTEN * len(falls) >= len(times) else None


def _after_midnight(times: Sequence[int]) -> list[int]:
    found, days = list(times[:1]), 0
    for before, after in pairwise(times):
        days += after < before
        found.append(after + days * DAY_NS)
    return found
