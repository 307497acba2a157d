"""The main cause: a standing queue if there is one, or else what held the flows back, or what harms pings and calls.

Of several queues that count, the main cause is the one with the largest share of the delay.

A delay counts if it lasts for half of the time with load and is at least 10 ms. With an AQM, and for a delay that no
queue explains, it must also be at least half of the idle RTT, or 50 ms: AQMs have a target of a few milliseconds, some
of more than ten. If pings cross the queue, they must show the delay, too: with flow queueing, the queue of one flow
delays no other flow. Without pings, nothing shows that other flows wait there. Queues that are each too short to count
are added up if pings wait in all of them.

Nothing is wrong only if, in addition, hardly any ping is lost and a call would not be poor.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.harm import Harm, harm
from bufferscope.analysis.explanation.limits import Limit, LimitedFlow, full_port, limited
from bufferscope.analysis.explanation.pings import Pings
from bufferscope.analysis.explanation.port_facts import separates, wifi_name
from bufferscope.analysis.explanation.standing import SLOWER, StandingQueue
from bufferscope.analysis.explanation.statement import Cause
from bufferscope.analysis.findings import LEAST_ADDED_MS, LEAST_ADDED_SHARE
from bufferscope.model.network import traffic_of_flow

LEAST_ADDED_S = LEAST_ADDED_MS / 1e3
MUCH_ADDED_S = 0.05
"""Enough to count on any path: the most that games tolerate."""
STANDS = 0.5
"""The least share of the time with a standing queue at which the queue counts."""
AGREE = 0.5
"""Pings that see less than this share of the queue's delay contradict it."""
IN_RING = 0.5
"""The share of a port's delay from which on its ring is the cause."""
LEAST_USED = 0.75
"""The utilisation that one flow that halves its window reaches without a queue: its window goes from half of the BDP to
the whole BDP. If a link carries at least this much, its queue is not too short."""
LEAST_PART_S = 0.001
"""The least delay of a queue that counts together with others."""
SPOILED = (Limit.RECEIVER, Limit.BUFFER, Limit.FIXED, Limit.LOSS, Limit.QUEUE)
"""Limits that a flow does not want."""
YIELDS = (Cause.NONE, Cause.APPLICATION, Cause.UNKNOWN, Cause.SHALLOW)
"""Causes from the flows that are not the main one where pings are lost or slow."""
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
    queue: StandingQueue | None = None
    """The queue, if it is the cause."""
    layer: str | None = None
    main: LimitedFlow | None = None
    """The flow that is limited, if that is the cause."""
    limits: tuple[LimitedFlow, ...] = ()
    """The limit of each flow that lasts."""
    harm: Harm | None = None
    """What is bad for pings or calls, if that is the cause, or why it is not said that nothing is wrong."""
    together: int = 1
    """How many queues on the pings' path count only together; `queue` is that with the largest share."""
    doubt: str | None = None
    """Why the cause is not known."""


def diagnose(found: Evidence) -> Diagnosis:
    """The main cause in the evidence of a run."""
    limits = tuple(limited(found, sender) for sender in found.senders)
    doubt = _doubt(found)
    if doubt:
        return Diagnosis(Cause.UNKNOWN, limits=limits, doubt=doubt)
    counting = next((queue for queue in found.standing if _counts(found, queue)), None)
    if counting:
        return _of_queue(found, _largest(found, counting), limits)
    if several := _several(found):
        return replace(_of_queue(found, several[0], limits), together=len(several))
    unexplained = _unexplained(found)
    if unexplained:
        return Diagnosis(Cause.UNKNOWN, limits=limits, doubt=unexplained)
    by_flows = _of_flows(found, limits)
    bad = harm(found) if by_flows.cause in YIELDS else None
    if bad and (bad.queue or by_flows.cause is not Cause.SHALLOW):
        return _of_harm(found, bad, by_flows)
    return by_flows


def _doubt(found: Evidence) -> str | None:
    """Why the records do not suffice for any cause."""
    if found.is_changed:
        return "the run was changed while it ran, so its settings do not apply to all of it"
    needed = [table for table in ("queues", "capacity", "flows") if table in found.missing]
    if needed:
        return f"the run has no {' and '.join(f'table {name}' for name in needed)}"
    if found.lasting and not found.senders and _is_unsampled(found):
        return "no long flow was sampled"
    rated = any(port.rate for way in found.ways.values() for port in way.out)
    return "no queue was sampled" if rated and not found.queues else None


def _is_unsampled(found: Evidence) -> bool:
    """Whether no flow that lasts was ever sampled; one that ended in the warm-up was."""
    names = [way.entry["name"] for way in found.lasting]
    return found.run.flows.select(traffic_of_flow()).filter(pl.col("traffic").is_in(names)).is_empty()


def round_trip_s(found: Evidence, port: str) -> float:
    """The shortest idle round trip of the traffic that crosses a port."""
    across = [way.round_trip_s for way in found.ways.values() if port in {each.name for each in (*way.out, *way.back)}]
    return min(across, default=0.0)


def _counts(found: Evidence, queue: StandingQueue) -> bool:
    is_plain = found.is_unmanaged(queue) and queue.delay_s >= LEAST_ADDED_S and queue.standing_share >= STANDS
    if not is_plain and not is_much(queue.delay_s, round_trip_s(found, queue.port)):
        return False
    seen = [seen_s(found, pings, queue) for pings in found.pings_across(queue.port)]
    if not seen:
        return not is_separate(found, queue)
    least_s = LEAST_ADDED_S if is_separate(found, queue) else 0.0
    return max(seen) >= max(AGREE * queue.delay_s, least_s)


def seen_s(found: Evidence, pings: Pings, queue: StandingQueue) -> float:
    """What pings wait; for a queue that may keep them apart, in its direction, and without shared queues there."""
    if not is_separate(found, queue):
        return pings.added_s(0.5)
    names = {port.name for port in pings.towards(queue.port)} - {queue.port}
    others = [found.queues[name] for name in names if name in found.queues]
    shared_s = sum(each.mean_s for each in others if not is_separate(found, each))
    return pings.added_towards_s(queue.port, 0.5) - shared_s


def is_separate(found: Evidence, queue: StandingQueue) -> bool:
    """Whether each flow may wait in a queue of its own."""
    return queue.deepest.layer != "ring" and separates(found.ports[queue.port].queue)


def _largest(found: Evidence, counting: StandingQueue) -> StandingQueue:
    """The shared queue with the largest share, which may be one that comes and goes beside the one that counts."""
    larger = (queue for queue in found.standing if queue.mean_s > counting.mean_s)
    return next(
        (queue for queue in larger if not is_separate(found, queue) and queue.mean_s >= LEAST_ADDED_S), counting
    )


def _several(found: Evidence) -> list[StandingQueue]:
    """The queues in which pings wait long only together, that with the largest share first."""
    for each in found.pings:
        added_s = each.added_s(0.5)
        names = {port.name for port in each.way}
        queues = [queue for queue in found.standing if queue.port in names and not is_separate(found, queue)]
        queues = [queue for queue in queues if queue.mean_s >= LEAST_PART_S]
        if is_much(added_s, each.own_s) and added_s <= sum(queue.mean_s for queue in queues) / AGREE:
            return queues
    return []


def is_much(added_s: float, own_s: float) -> bool:
    """Whether a delay counts beside the round trip of the empty path."""
    return added_s >= LEAST_ADDED_S and (added_s >= LEAST_ADDED_SHARE * own_s or added_s >= MUCH_ADDED_S)


def _of_queue(found: Evidence, queue: StandingQueue, limits: tuple[LimitedFlow, ...]) -> Diagnosis:
    total = sum(layer.mean_s for layer in queue.layers)
    in_ring = sum(layer.mean_s for layer in queue.layers if layer.layer == "ring")
    if total and in_ring / total >= IN_RING:
        return Diagnosis(Cause.RING, queue, "ring", limits=limits)
    is_wire = wifi_name(found.run.scenario, queue.port) is None
    shapes = queue.deepest.service_share < SLOWER and queue.deepest.layer != "ring" and is_wire
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
            return f"the pings of {each.name} exceed the idle RTT by {added}, and no queue explains it"
    return None


def _of_flows(found: Evidence, limits: Sequence[LimitedFlow]) -> Diagnosis:
    spoiled = [each for each in limits if each.limit in SPOILED and _is_spoiled(found, each)]
    if spoiled:
        main = max(spoiled, key=lambda each: _foregone(found, each))
        return Diagnosis(_CAUSES[main.limit], main=main, limits=tuple(limits))
    greedy = [each for each in limits if each.limit is not Limit.APPLICATION]
    if greedy:
        main = max(greedy, key=lambda each: each.sender.goodput_bps)
        if main.limit is Limit.UNKNOWN and _used(found, main) < LEAST_USED:
            doubt = f"nothing in the records limits {main.sender.flow}"
            return Diagnosis(Cause.UNKNOWN, main=main, limits=tuple(limits), doubt=doubt)
        return Diagnosis(Cause.NONE, main=main, limits=tuple(limits))
    applications = [each for each in limits if each.sender.is_tcp]
    if applications:
        main = max(applications, key=lambda each: each.sender.goodput_bps)
        return Diagnosis(Cause.APPLICATION, main=main, limits=tuple(limits))
    return Diagnosis(Cause.NONE, limits=tuple(limits))


def _of_harm(found: Evidence, bad: Harm, by_flows: Diagnosis) -> Diagnosis:
    """The cause where flows and queues show none, and yet pings are lost or a call is poor."""
    if bad.is_path:
        return replace(by_flows, harm=bad)
    if bad.queue:
        return replace(_of_queue(found, bad.queue, by_flows.limits), harm=bad)
    if bad.port:
        return Diagnosis(Cause.LOSS if bad.on_wire else Cause.SHALLOW, limits=by_flows.limits, harm=bad)
    return Diagnosis(
        Cause.UNKNOWN, limits=by_flows.limits, harm=bad, doubt=f"{bad.sentence}, and the records do not show why"
    )


def _is_spoiled(found: Evidence, each: LimitedFlow) -> bool:
    """Whether a limit leaves much of the path unused."""
    if full_port(found, each.sender):
        return False
    return each.limit is not Limit.QUEUE or _used(found, each) < LEAST_USED


def _used(found: Evidence, each: LimitedFlow) -> float:
    """The largest share of what a port on a flow's way can pass on that is sent."""
    return max((found.queues[port.name].used for port in each.sender.way.out if port.name in found.queues), default=0.0)


def _foregone(found: Evidence, each: LimitedFlow) -> float:
    """What the slowest link on a flow's way could still have carried."""
    return each.sender.way.rate_bps - each.sender.goodput_bps
