"""The finding that is plain to see in a run, in one sentence: how much the queue adds to the round trip, and which one.

The sentence is printed only if all of this holds for every repetition of a point:

- the run was not changed on its way;
- one `ping` crosses the network, and its median round-trip time is known: lost probes don't hide it;
- the median round trip exceeds that of the empty path by at least 10 ms, and by at least half of it;
- the queues on the ping's path explain that: on average over time, sending their content takes between half and twice
  as long;
- one port has at least 80 % of this delay, the same port in all repetitions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bufferscope.base.fmt import NBSP, number
from bufferscope.figures.source import PlottedPoint
from bufferscope.metrics import MetricError, metric
from bufferscope.metrics.capacity import capacities
from bufferscope.metrics.idle import transit_s
from bufferscope.metrics.queues import mean_delays_s
from bufferscope.metrics.records import RunRecords, was_changed
from bufferscope.metrics.window import Window
from bufferscope.model.network import path, probers, traffic_ends

LEAST_ADDED_MS = 10
"""About the delay that a user begins to notice in a game or a call."""
LEAST_ADDED_SHARE = 0.5
"""Share of the empty path's round trip."""
LEAST_SHARE = 0.8
"""Share of the queueing delay on the ping's path, in one port."""
EXPLAINED = (0.5, 2)
"""The median may differ from the mean over time; beyond these bounds, something other than the queue contributes."""
LEAST_LOST = 0.02
"""The share of lost pings from which on it is said. ITU-T Y.1541 allows calls a tenth of a percent."""
FEWEST_LOST = 3
"""Fewer lost pings are chance."""
MOST_POINTS = 6
"""If there are more, only those with the least and the most delay are shown."""
HEADER_BYTES = 28
"""IPv4 and ICMP."""
MS = 1e3


@dataclass(frozen=True)
class Finding:
    """A queue's part in the round trip."""

    added_ms: float
    """The median round trip above that of the empty path."""
    path_ms: float
    """The round trip of the empty path."""
    port: str
    share: float
    """Share of the queueing delay on the ping's path that arises in this port."""
    ring_share: float | None = None
    """The part of that which arises in the driver's ring; None without a ring."""
    lost_share: float = 0.0
    """The share of the pings without an answer, of which the median says nothing; 0 if that is too little to count."""


def told(points: Sequence[PlottedPoint]) -> list[str]:
    """The sentences about a result's points; empty if nothing is plain, as where each run has a path of its own."""
    points = [point for point in points if "member" not in point.first.meta]
    delays_s = mean_delays_s([run for point in points for run in point.runs])
    each = [(point.label, _of_point([(run, next(delays_s)) for run in point.runs])) for point in points]
    found = [(label, finding) for label, finding in each if finding]
    if len(found) > MOST_POINTS:
        found = [min(found, key=lambda each: each[1].added_ms), max(found, key=lambda each: each[1].added_ms)]
    return [sentence(label if len(points) > 1 else "", finding) for label, finding in found]


def sentence(label: str, finding: Finding) -> str:
    """A finding in words, as in: The queue adds 170 ms to the path's 20 ms (median); 96 % of it in r1>h2."""
    added, own = (f"{number(float(f'{value:.2g}'))}{NBSP}ms" for value in (finding.added_ms, finding.path_ms))
    share = _percent(finding.share)
    begin = f"{label}: the" if label else "The"
    ring = "" if finding.ring_share is None else f", {_percent(finding.ring_share)} of that in the driver's ring"
    lost = f"; {_percent(finding.lost_share)} of the pings are lost" if finding.lost_share else ""
    return f"{begin} queue adds {added} to the path's {own} (median); {share} of it in {finding.port}{ring}{lost}."


def _percent(share: float) -> str:
    return "all" if share > 0.995 else "none" if share < 0.005 else f"{100 * share:.0f}{NBSP}%"


def find(runs: Sequence[RunRecords]) -> Finding | None:
    """The finding that is plain in all repetitions of a point; None if one of them leaves a doubt."""
    return _of_point(list(zip(runs, mean_delays_s(runs), strict=True)))


def _of_point(runs: Sequence[tuple[RunRecords, Mapping[str, float]]]) -> Finding | None:
    """The same for runs that are given with the mean delays of their ports."""
    found = [finding for run, delays_s in runs if (finding := _find(run, delays_s))]
    if len(found) < len(runs) or len({finding.port for finding in found}) != 1:
        return None
    return Finding(
        fmean(finding.added_ms for finding in found),
        found[0].path_ms,
        found[0].port,
        fmean(finding.share for finding in found),
        _mean([finding.ring_share for finding in found]),
        fmean(finding.lost_share for finding in found),
    )


def _mean(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return fmean(known) if known else None


def _find(run: RunRecords, delays_s: Mapping[str, float]) -> Finding | None:
    found = probers(run.scenario)
    if len(found) != 1 or was_changed(run):
        return None
    near, far = traffic_ends(run.scenario, found[0])
    way = [*path(run.scenario, near, far), *path(run.scenario, far, near)]
    capacity = capacities(run)
    if any(port.rate and port.name not in capacity for port in way):
        return None
    try:
        median = metric(run, "rtt.p50_ms")
    except MetricError:
        return None
    own = MS * transit_s(way, capacity, found[0]["payload_bytes"] + HEADER_BYTES, Window.of(run))
    added = median.number - own
    if median.censored or added < max(LEAST_ADDED_MS, LEAST_ADDED_SHARE * own):
        return None
    waits = {port.name: MS * delays_s[port.name] for port in way if port.name in delays_s}
    total = sum(waits.values())
    if not EXPLAINED[0] * total <= added <= EXPLAINED[1] * total:
        return None
    port = max(waits, key=lambda name: waits[name])
    share = waits[port] / total
    if share < LEAST_SHARE:
        return None
    try:
        in_ring = metric(run, f"ring_share.{port}").number
    except MetricError:
        in_ring = None
    return Finding(added, own, port, share, in_ring, lost_share(run))


def lost_share(run: RunRecords) -> float:
    """The share of a run's pings without an answer; 0 if that is too little to count, or if the run has no pings."""
    try:
        sent, lost = (metric(run, f"rtt.{name}").number for name in ("sent", "lost"))
    except MetricError:
        return 0.0
    return lost / sent if is_lossy(lost, sent) else 0.0


def is_lossy(lost: float, sent: float) -> bool:
    """Whether so many pings are lost that it is neither chance nor harmless."""
    return lost >= FEWEST_LOST and lost >= LEAST_LOST * sent
