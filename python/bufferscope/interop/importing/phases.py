"""Where pings go from an idle path to a loaded one, and back: one median over both would be that of neither.

Nobody wrote down when the load began, so it is found in the round trips: two levels, far apart, of which the longer one
lasts for one stretch of time. A file in which the levels come and go, or lie closer, has no such stretch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bufferscope.analysis.findings import LEAST_ADDED_MS
from bufferscope.interop.importing.result import Probe, Reading

FEWEST = 5
"""Answered pings that a phase has at least."""
LEAST_FACTOR = 2.0
"""How much longer the median under load is at least; it is also at least `LEAST_ADDED_MS` longer."""
PURE_IDLE, PURE_LOADED = 0.9, 0.8
"""The shares of the pings that must be at the level of their phase."""
ROUNDS = 20
MS = 1e6


@dataclass(frozen=True)
class Loaded:
    """The stretch of time at the longer level."""

    begin_ns: int
    end_ns: int
    idle_ms: float
    """The medians of the answered pings outside of it, and in it."""
    loaded_ms: float


def mark(found: Reading) -> None:
    """Let the metrics of a file with nothing but pings begin and end with the load, and say so in a warning."""
    if found.flows or found.loaded_ns is not None or not any(found.probes.values()):
        return
    loaded = _common([phase(probes) for probes in found.probes.values()])
    if loaded is None:
        return
    sent = [probe.sent_ns for probes in found.probes.values() for probe in probes]
    first_ns, last_ns = min(sent), max(sent)
    found.loaded_ns = loaded.begin_ns
    begin, end = (f"{(time - first_ns) / 1e9:.4g} s" for time in (loaded.begin_ns, loaded.end_ns))
    until = ""
    if loaded.end_ns < last_ns:
        found.end_ns = loaded.end_ns
        until = f" to {end}"
    found.warnings.append(
        f"the pings rise from {loaded.idle_ms:.4g} ms to {loaded.loaded_ms:.4g} ms (medians) from {begin}{until}, as "
        "under load: metrics are of that time, and idle.* of the rest"
    )


def _common(phases: Sequence[Loaded | None]) -> Loaded | None:
    """The stretch of all targets, from the first begin to the last end; None unless each has one, at the same time."""
    known = [each for each in phases if each]
    if not known or len(known) < len(phases):
        return None
    begins, ends = [each.begin_ns for each in known], [each.end_ns for each in known]
    if max(begins) >= min(ends):
        return None
    idle_ms, loaded_ms = median(each.idle_ms for each in known), median(each.loaded_ms for each in known)
    return Loaded(min(begins), max(ends), idle_ms, loaded_ms)


def phase(probes: Sequence[Probe]) -> Loaded | None:
    """The one period in which the round trips are at a longer level; None without such a period."""
    answered = sorted((probe.sent_ns, probe.rtt_ns) for probe in probes if probe.rtt_ns)
    if len(answered) < 2 * FEWEST:
        return None
    limit = _limit([math.log(rtt_ns) for _, rtt_ns in answered])
    is_long = [math.log(rtt_ns) > limit for _, rtt_ns in answered]
    begin, end = _stretch(is_long)
    inside = [rtt_ns for _, rtt_ns in answered[begin:end]]
    outside = [rtt_ns for _, rtt_ns in (*answered[:begin], *answered[end:])]
    if min(len(inside), len(outside)) < FEWEST:
        return None
    long_inside = sum(is_long[begin:end])
    is_pure = long_inside >= PURE_LOADED * len(inside) and sum(is_long) - long_inside <= (1 - PURE_IDLE) * len(outside)
    idle_ms, loaded_ms = median(outside) / MS, median(inside) / MS
    if not is_pure or loaded_ms < max(LEAST_FACTOR * idle_ms, idle_ms + LEAST_ADDED_MS):
        return None
    return Loaded(answered[begin][0], answered[end - 1][0], idle_ms, loaded_ms)


def _limit(values: Sequence[float]) -> float:
    """What lies half-way between two levels (two means, after Lloyd)."""
    limit = (min(values) + max(values)) / 2
    for _ in range(ROUNDS):
        low, high = [v for v in values if v <= limit], [v for v in values if v > limit]
        if not low or not high:
            break
        limit, before = (fmean(low) + fmean(high)) / 2, limit
        if math.isclose(limit, before):
            break
    return limit


def _stretch(is_long: Sequence[bool]) -> tuple[int, int]:
    """The positions from and to which the most are long and the fewest are not (the maximal sum of Kadane)."""
    best, found, total, begin = 0, (0, 0), 0, 0
    for index, each in enumerate(is_long):
        total += 1 if each else -1
        if total <= 0:
            total, begin = 0, index + 1
        elif total > best:
            best, found = total, (begin, index + 1)
    return found
