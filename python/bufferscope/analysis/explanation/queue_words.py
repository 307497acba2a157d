"""Statements about a standing queue: where it is, since when, whose packets it has, and how long it should be."""

import math
from collections.abc import Iterator

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.diagnosis import AGREE as SEEN
from bufferscope.analysis.explanation.diagnosis import Diagnosis, is_separate, round_trip_s, seen_s
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.senders import Sender
from bufferscope.analysis.explanation.standing import FRAME_BITS, StandingQueue
from bufferscope.analysis.explanation.statement import Number, Statement
from bufferscope.analysis.lengths import RULE

LAYERS = {"qdisc": "queueing discipline", "ring": "driver's ring", "stacked": "stacked interface's discipline"}
LEAST_TOLD_S = 0.001
"""A shorter delay is not reported."""
AGREE = (0.5, 2.0)
"""The bounds of the senders' data in flight beyond goodput x idle RTT, in multiples of the backlog."""


def queue_statements(found: Evidence, diagnosis: Diagnosis) -> Iterator[Statement]:
    """All of them, about the queue that is the cause; without one, only where the small delay was."""
    yield from _where(found)
    if diagnosis.queue:
        yield from _layers(diagnosis.queue)
        yield _since(found, diagnosis.queue)
        yield _who(found, diagnosis.queue)
        yield from _window(found, diagnosis.queue)
        yield from _limit(found, diagnosis.queue)


def _where(found: Evidence) -> Iterator[Statement]:
    """The ports with a delay, and their shares."""
    told = [each for each in found.standing if each.mean_s >= LEAST_TOLD_S]
    total = sum(each.mean_s for each in found.standing)
    for each in told[:4]:
        part = each.mean_s / total
        numbers = {"delay_ms": 1e3 * each.delay_s, "mean_ms": 1e3 * each.mean_s, "share": part}
        sentence = (
            f"In {each.port}, packets wait {fmt.time(each.mean_s)} on average, "
            f"{fmt.share(part)} of the delay in all queues.{_apart(found, each)}"
        )
        yield Statement("where", sentence, numbers, "queue_length")
    if not told and found.queues:
        least = fmt.time(LEAST_TOLD_S)
        yield Statement("where", f"No queue delays packets by more than {least} on average.", {}, "queue_length")


def _apart(found: Evidence, queue: StandingQueue) -> str:
    """A sentence that other flows do not wait there, if pings show it."""
    seen = [seen_s(found, pings, queue) for pings in found.pings_across(queue.port)]
    if not seen or not is_separate(found, queue) or max(seen) >= SEEN * queue.mean_s:
        return ""
    return " These are packets of flows in queues of their own; the pings do not wait for them."


def _layers(queue: StandingQueue) -> Iterator[Statement]:
    """The parts of a port with several layers."""
    if len(queue.layers) < 2:
        return
    parts = ", ".join(
        f"{fmt.percent(layer.mean_s / queue.mean_s)} in the {LAYERS[layer.layer]}"
        for layer in sorted(queue.layers, key=lambda layer: -layer.mean_s)
    )
    numbers = {f"{layer.layer}_ms": 1e3 * layer.mean_s for layer in queue.layers}
    yield Statement("layers", f"Of that, {parts}.", numbers, "queue_length")


def _since(found: Evidence, queue: StandingQueue) -> Statement:
    if queue.longest_s is None:
        sentence = f"The queue in {queue.port} comes and goes: it never lasts for 100 ms."
        return Statement("since", sentence, {"standing_share": queue.standing_share}, "queue_length")
    low_s = sum(layer.low_s for layer in queue.layers)
    begin_s, end_s = queue.longest_s
    numbers = {
        "onset_s": begin_s,
        "end_s": end_s,
        "load_s": found.window.seconds,
        "standing_share": queue.standing_share,
        "never_drained_ms": 1e3 * low_s,
    }
    load = f"the {fmt.length(found.window.seconds)} with load ({fmt.span(found.window)})"
    part = f"all of {load}" if queue.standing_share >= 0.995 else f"{fmt.percent(queue.standing_share)} of {load}"
    longest = f"{fmt.instant(begin_s)} to {fmt.instant(end_s)}"
    sentence = f"The queue is standing for {part}; the longest such period is from {longest}."
    if low_s >= LEAST_TOLD_S:
        sentence += f" The delay is above {fmt.time(low_s)} {fmt.percent(0.9)} of the time (a standing queue)."
    return Statement("since", sentence, numbers, "queue_length")


def _who(found: Evidence, queue: StandingQueue) -> Statement:
    """Whose packets are in the queue."""
    across = found.crossing(queue.port)
    if not across:
        return Statement(
            "who", f"Cannot tell whose packets are in {queue.port}: no long flow that crosses it was sampled."
        )
    excess = {each.flow: each.excess_bytes for each in across}
    total = sum(excess.values())
    backlog = sum(layer.mean_bytes for layer in queue.layers)
    if not AGREE[0] * backlog <= total <= AGREE[1] * backlog:
        sentence = (
            f"Cannot tell whose packets are in {queue.port}: its backlog is {fmt.size(backlog)}, but the flows across "
            f"it have {fmt.size(total)} in flight beyond goodput x idle RTT."
        )
        return Statement("who", sentence, {"queue_bytes": backlog, "excess_bytes": total}, "cwnd")
    return _told_who(queue, across, total)


def _told_who(queue: StandingQueue, across: list[Sender], total: float) -> Statement:
    most = max(across, key=lambda each: each.excess_bytes)
    part = most.excess_bytes / total
    numbers: dict[str, Number] = {
        "flow": most.flow,
        "share": part,
        "flow_bytes": most.excess_bytes,
        "flows": len(across),
    }
    if len(across) == 1:
        sentence = f"The packets belong to {most.flow}: {fmt.size(most.excess_bytes)} on average."
    elif part >= 0.5:
        sentence = f"{fmt.share(part).capitalize()} of the packets belong to {most.flow}, one of {len(across)} flows."
    else:
        sentence = f"The packets belong to {len(across)} flows; {most.flow} has the most, {fmt.percent(part)}."
    unknown = "Each flow's part is its data in flight beyond goodput x idle RTT (Little's law), not a count of packets."
    return Statement("who", sentence, numbers, "cwnd" if most.is_tcp else "goodput", unknown)


def culprit(found: Evidence, queue: StandingQueue) -> str | None:
    """The flow with at least half of the packets in the queue; None if it is not known, or there is no such flow."""
    numbers = _who(found, queue).numbers
    part = numbers.get("share", 0.0)
    return str(numbers["flow"]) if isinstance(part, float) and part >= 0.5 else None


def _window(found: Evidence, queue: StandingQueue) -> Iterator[Statement]:
    """How far the data in flight exceeds the bandwidth-delay product."""
    across = [each for each in found.crossing(queue.port) if each.is_tcp]
    held = held_bytes(found, queue)
    if not across or not held:
        return
    inflight = sum(each.inflight_bytes for each in across)
    numbers = {"inflight_bytes": inflight, "held_bytes": held, "factor": inflight / held}
    who = across[0].flow if len(across) == 1 else f"The {len(across)} flows together"
    path = f"{fmt.rate(queue.service_bps)} and {fmt.time(round_trip_s(found, queue.port))}"
    sentence = (
        f"{who} {'has' if len(across) == 1 else 'have'} {fmt.size(inflight)} in flight, "
        f"{fmt.times(inflight / held)} the BDP ({fmt.size(held)}: {path})."
    )
    yield Statement("window", sentence, numbers, "cwnd")


def held_bytes(found: Evidence, queue: StandingQueue) -> float:
    """The BDP: the port's own rate times the shortest idle RTT of the flows across it."""
    trips = [each.way.round_trip_s for each in found.crossing(queue.port)]
    return queue.service_bps * min(trips, default=0.0) / 8


def limit_packets(found: Evidence, queue: StandingQueue) -> int | None:
    """The tail-drop limit that one flow needs, or many: BDP / sqrt(n) (Appenzeller, Keslassy, McKeown 2004)."""
    trips = [each.way.round_trip_s for each in found.crossing(queue.port) if each.is_tcp]
    if not trips:
        return None
    packets = queue.service_bps * max(trips) / FRAME_BITS / math.sqrt(len(trips))
    return max(2, math.ceil(packets))


def _limit(found: Evidence, queue: StandingQueue) -> Iterator[Statement]:
    needed = limit_packets(found, queue)
    flows = sum(each.is_tcp for each in found.crossing(queue.port))
    if needed is None:
        return
    port = found.ports[queue.port]
    formula = "the BDP" if flows == 1 else f"the BDP divided by √{flows}"
    has = _own_limit(needed, port.limit_packets, port.limit_bytes)
    sentence = f"With tail drop, {queue.port} needs a limit of {needed} packets, {formula}{has}."
    numbers: dict[str, Number] = {"needed_packets": needed}
    if port.limit_packets is not None:
        numbers["limit_packets"] = port.limit_packets
    yield Statement(
        "limit", sentence, numbers, "queue_length", f"Only a run shows whether it keeps the goodput: {RULE}."
    )


def _own_limit(needed: int, limit_packets: int | None, limit_bytes: int | None) -> str:
    if limit_packets is not None and limit_packets <= needed:
        return f"; its limit, {limit_packets}, is no larger, so only an AQM can shorten the queue"
    if limit_packets is not None:
        return f"; its limit is {limit_packets}"
    return f"; its limit is {fmt.size(limit_bytes)}" if limit_bytes else ""
