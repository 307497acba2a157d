"""What `fping` prints: `-C N`, also with `-q`, and `-l` or `-c N`, with `-D` and without.

Each target is an entry of its own. With `-D`, a time stamp is when the line was printed: the answer had then just
arrived. Without, probes are taken to have been sent at fping's default interval (`-p`), a second.
"""

import re
from typing import Any

from bufferscope.importing.content import Unusable
from bufferscope.importing.result import Probe, Reading, with_missing
from bufferscope.importing.values import NANOSECONDS, milliseconds
from bufferscope.observed import traffic_name

INTERVAL_NS = NANOSECONDS
LONGEST_LINE = 100_000
"""A line of `-C` has a number for each probe."""
MOST_TARGETS = 1000
FIRST_LINES = 20_000
_PROBE = re.compile(
    r"(?:\[(\d{1,12})\.(\d{1,9})\] )?(\S{1,300}) +: \[(\d{1,9})\], (?:\d+ bytes, (\d{1,9}(?:\.\d{1,6})?) ms|timed out)"
)
_SUMMARY = re.compile(r"(\S{1,300}) +:((?: (?:-|\d{1,9}(?:\.\d{1,6})?))+)$")


def recognises(content: Any) -> bool:
    """Whether a text comes from fping."""
    return any(_PROBE.match(line) or _SUMMARY.match(line) for line in content[:FIRST_LINES].split("\n"))


def read(content: Any) -> Reading:
    """The answers, and what is missing between them, as probes; raises `Unusable`."""
    targets: dict[str, list[Probe]] = {}
    summaries: dict[str, list[Probe]] = {}
    stamped = []
    for each in content.splitlines():
        line = each[:LONGEST_LINE].rstrip()
        if probe := _PROBE.match(line):
            stamped.append(probe[1] is not None)
            targets.setdefault(probe[3], []).append(_probe(probe))
        elif summary := _SUMMARY.match(line):
            summaries[summary[1]] = _summary(summary[2].split())
        if len(targets) + len(summaries) > 2 * MOST_TARGETS:
            raise Unusable(f"found more than {MOST_TARGETS} targets; allowed: at most that")
    found = Reading("fping", title=f"fping {', '.join(targets or summaries)}", clock=bool(stamped) and all(stamped))
    for host, probes in (targets or summaries).items():
        name = traffic_name(host) if len(targets or summaries) > 1 else "ping"
        found.ping(_new(name, found), with_missing(probes, 0))
    if not found.clock:
        found.warnings.append("no time stamps (fping -D): probes are taken to have been sent every second")
    return found


def _new(name: str, found: Reading) -> str:
    """The name, or one that no entry has."""
    return name if name not in found.probes else f"{name}-{len(found.probes)}"


def _probe(line: re.Match[str]) -> Probe:
    seq = int(line[4])
    rtt_ns = milliseconds(float(line[5])) if line[5] else None
    t_ns = int(line[1]) * NANOSECONDS + int(line[2].ljust(9, "0")) if line[1] else seq * INTERVAL_NS
    return Probe(seq, t_ns - (rtt_ns or 0) if line[1] else t_ns, rtt_ns)


def _summary(words: list[str]) -> list[Probe]:
    return [
        Probe(seq, seq * INTERVAL_NS, None if word == "-" else milliseconds(float(word)))
        for seq, word in enumerate(words)
    ]
