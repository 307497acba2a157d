"""The main cause: a standing queue if there is one, or else what held the flows back.

A delay counts if it lasts for half of the time with load and is at least 10 ms. Where a queue manager keeps the queue,
and for a delay that no queue explains, it must also be at least half of the empty path's round trip, or 50 ms: managers
aim at a few milliseconds, and not all at fewer than ten. Where pings cross the queue, they must show it, too: a queue
that only its own flow waits in, behind flow queueing, harms nobody else. Without pings, nothing shows that anybody else
waits there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bufferscope.explanation.evidence import Evidence
from bufferscope.explanation.limits import Limit, Limited, full_port, limited
from bufferscope.explanation.places import separates
from bufferscope.explanation.standing import SLOWER, Standing
from bufferscope.explanation.statement import Cause
from bufferscope.findings import LEAST_ADDED_MS, LEAST_ADDED_SHARE

LEAST_ADDED_S = LEAST_ADDED_MS / 1e3
MUCH_ADDED_S = 0.05
"""Enough to count on any path: what games can stand."""
STANDS = 0.5
"""The share of the time for which a queue that counts must stand."""
AGREE = 0.5
"""Pings that see less than this share of the queue's delay contradict it."""
IN_RING = 0.5
"""The share of a port's delay from which on its ring is the cause."""
LEAST_USED = 0.75
"""What one flow that halves its window takes of a path whose queue holds nothing: its window goes from half of what the
path holds to all of it. A queue with which a link carries that much is not to blame."""
SPOILED = (Limit.RECEIVER, Limit.BUFFER, Limit.FIXED, Limit.LOSS, Limit.QUEUE)
"""Limits that a flow does not want."""
_CAUSES = {
    Limit.RECEIVER: Cause.WINDOW,
    Limit.BUFFER: Cause.WINDOW,
    Limit.FIXED: Cause.WINDOW,
    Limit.LOSS: Cause.LOSS,
    Limit.QUEUE: Cause.SHALLOW,
}


@dataclass(frozen=True)
class Diagnosis:
    """The main cause of a run, and what it rests on."""

    cause: Cause
    queue: Standing | None = None
    """The queue, if it is the cause."""
    layer: str | None = None
    main: Limited | None = None
    """The flow that is held back, if that is the cause."""
    limits: tuple[Limited, ...] = ()
    """The limit of each flow that lasts."""
    doubt: str | None = None
    """Why the cause cannot be told."""


def diagnose(found: Evidence) -> Diagnosis:
    """The main cause in the evidence of a run."""
    limits = tuple(limited(found, sender) for sender in found.senders)
    doubt = _doubt(found)
    if doubt:
        return Diagnosis(Cause.UNKNOWN, limits=limits, doubt=doubt)
    for queue in found.standing:
        if _counts(found, queue):
            return _of_queue(found, queue, limits)
    unexplained = _unexplained(found)
    if unexplained:
        return Diagnosis(Cause.UNKNOWN, limits=limits, doubt=unexplained)
    return _of_flows(found, limits)


def _doubt(found: Evidence) -> str | None:
    """Why the records do not suffice for any cause."""
    if found.is_changed:
        return "the run was changed on its way, so its settings do not hold for all of it"
    needed = [table for table in ("queues", "capacity", "flows") if table in found.missing]
    if needed:
        return f"the run has no {' and '.join(f'table {name}' for name in needed)}"
    if found.lasting and not found.senders:
        return "no sample of a flow that lasts was taken"
    rated = any(port.rate for way in found.ways.values() for port in way.out)
    return "no sample of a queue was taken" if rated and not found.queues else None


def round_trip_s(found: Evidence, port: str) -> float:
    """The shortest idle round trip of the traffic that crosses a port."""
    across = [way.round_trip_s for way in found.ways.values() if port in {each.name for each in (*way.out, *way.back)}]
    return min(across, default=0.0)


def _counts(found: Evidence, queue: Standing) -> bool:
    is_plain = found.is_unmanaged(queue) and queue.delay_s >= LEAST_ADDED_S and queue.standing_share >= STANDS
    if not is_plain and not is_much(queue.delay_s, round_trip_s(found, queue.port)):
        return False
    seen = [pings.added_s(0.5) for pings in found.pings_across(queue.port)]
    if seen:
        return max(seen) >= AGREE * queue.delay_s
    return queue.deepest.layer == "ring" or not separates(found.ports[queue.port].queue)


def is_much(added_s: float, own_s: float) -> bool:
    """Whether a delay counts beside the round trip of the empty path."""
    return added_s >= LEAST_ADDED_S and (added_s >= LEAST_ADDED_SHARE * own_s or added_s >= MUCH_ADDED_S)


def _of_queue(found: Evidence, queue: Standing, limits: tuple[Limited, ...]) -> Diagnosis:
    total = sum(layer.mean_s for layer in queue.layers)
    in_ring = sum(layer.mean_s for layer in queue.layers if layer.layer == "ring")
    if total and in_ring / total >= IN_RING:
        return Diagnosis(Cause.RING, queue, "ring", limits=limits)
    shapes = queue.deepest.service_share < SLOWER and queue.deepest.layer != "ring"
    return Diagnosis(Cause.SHAPER if shapes else Cause.QUEUE, queue, queue.deepest.layer, limits=limits)


def _unexplained(found: Evidence) -> str | None:
    """A delay of the pings that no queue explains."""
    for each in found.pings:
        added_s = each.added_s(0.5)
        queued_s = sum(found.queues[port.name].mean_s for port in each.way if port.name in found.queues)
        if is_much(added_s, each.own_s) and queued_s < AGREE * added_s:
            if added_s == float("inf"):
                return f"more than half of the pings of {each.name} have no answer"
            added = f"{1e3 * added_s:.3g} ms"
            return f"the pings of {each.name} wait {added} more than on the idle path, and no queue explains it"
    return None


def _of_flows(found: Evidence, limits: Sequence[Limited]) -> Diagnosis:
    spoiled = [each for each in limits if each.limit in SPOILED and _is_spoiled(found, each)]
    if spoiled:
        main = max(spoiled, key=lambda each: _foregone(found, each))
        return Diagnosis(_CAUSES[main.limit], main=main, limits=tuple(limits))
    greedy = [each for each in limits if each.limit is not Limit.APPLICATION]
    if greedy:
        main = max(greedy, key=lambda each: each.sender.goodput_bps)
        if main.limit is Limit.UNKNOWN:
            doubt = f"nothing in the records limits {main.sender.flow}"
            return Diagnosis(Cause.UNKNOWN, main=main, limits=tuple(limits), doubt=doubt)
        return Diagnosis(Cause.NONE, main=main, limits=tuple(limits))
    applications = [each for each in limits if each.sender.is_tcp]
    if applications:
        main = max(applications, key=lambda each: each.sender.goodput_bps)
        return Diagnosis(Cause.APPLICATION, main=main, limits=tuple(limits))
    return Diagnosis(Cause.NONE, limits=tuple(limits))


def _is_spoiled(found: Evidence, each: Limited) -> bool:
    """Whether a limit leaves much of the path unused."""
    if full_port(found, each.sender):
        return False
    used = [found.queues[port.name].utilization for port in each.sender.way.out if port.name in found.queues]
    return each.limit is not Limit.QUEUE or max(used, default=0.0) < LEAST_USED


def _foregone(found: Evidence, each: Limited) -> float:
    """What the slowest link on a flow's way could still have carried."""
    return each.sender.way.rate_bps - each.sender.goodput_bps
