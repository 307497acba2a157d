"""Statements about flows: what held each of them back."""

from collections.abc import Iterator, Sequence

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.diagnosis import Diagnosis
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.limits import Limit, LimitedFlow
from bufferscope.analysis.explanation.port_facts import wifi_name
from bufferscope.analysis.explanation.statement import Number, Statement
from bufferscope.model.figure_names import FigureName

MOST_FLOWS = 6
"""The most flows with a sentence of their own."""
DERIVED = "The kernel does not count drops by flow: losses beyond the drops of its queues count as lost elsewhere."


def flow_statements(found: Evidence, diagnosis: Diagnosis) -> Iterator[Statement]:
    """What limited each long flow; many flows with the same limit share a sentence."""
    together: dict[Limit, list[LimitedFlow]] = {}
    for each in diagnosis.limits:
        together.setdefault(each.limit, []).append(each)
    for limit, alike in together.items():
        if len(diagnosis.limits) > MOST_FLOWS and len(alike) > 1:
            yield _of_many(found, limit, alike)
        else:
            yield from (flow_statement(found, each) for each in alike)


def _of_many(found: Evidence, limit: Limit, alike: Sequence[LimitedFlow]) -> Statement:
    total = sum(each.sender.goodput_bps * each.sender.seconds for each in alike) / found.window.seconds
    sentence = f"{len(alike)} flows, {fmt.rate(total)} together: limited by {_words(limit)}."
    return Statement("sender", sentence, {"limit": str(limit), "flows": len(alike), "goodput_bps": total}, "goodput")


def flow_statement(found: Evidence, each: LimitedFlow) -> Statement:
    """What limited one flow."""
    sender = each.sender
    begin = f"{sender.flow} gets {fmt.rate(sender.goodput_bps)}"
    numbers: dict[str, Number] = {
        "flow": sender.flow,
        "limit": str(each.limit),
        "goodput_bps": sender.goodput_bps,
    }
    match each.limit:
        case Limit.RECEIVER | Limit.BUFFER | Limit.FIXED:
            return _of_window(each, begin, numbers)
        case Limit.APPLICATION:
            return Statement("sender", f"{begin}: {_application(each)}.", numbers, "goodput")
        case Limit.LOSS | Limit.QUEUE:
            return _of_losses(found, each, begin, numbers)
        case Limit.LINK:
            return Statement("sender", f"{begin}: {full(found, each.port)}.", numbers, "goodput")
        case Limit.START:
            return Statement("sender", f"{begin}: it is still in slow start when the run ends.", numbers, "cwnd")
    unknown = "Neither its own host, nor a full link, nor losses explain its goodput."
    return Statement("sender", f"{begin}; its limit is not known.", numbers, "goodput", unknown)


def full(found: Evidence, port: str | None) -> str:
    """A clause that a port is full: its wire, or the shaper in front of it."""
    queue = found.queues.get(port or "")
    if queue is None or queue.service_bps >= queue.rate_bps or wifi_name(found.run.scenario, queue.port):
        return f"{port} sends at its full rate"
    kind = found.ports[queue.port].queue["qdisc"]
    return f"{kind} in {port} sends at its configured rate, {fmt.rate(queue.service_bps)}"


def _words(limit: Limit) -> str:
    return {
        Limit.LINK: "a full link",
        Limit.RECEIVER: "the receiver's window",
        Limit.BUFFER: "the send buffer",
        Limit.FIXED: "a constant congestion window",
        Limit.APPLICATION: "the application, which writes no more data",
        Limit.LOSS: "losses outside of queues",
        Limit.QUEUE: "a queue that drops before the link is full",
        Limit.START: "slow start, which has not ended",
        Limit.UNKNOWN: "something that the records do not show",
    }[limit]


def _of_window(each: LimitedFlow, begin: str, numbers: dict[str, Number]) -> Statement:
    sender = each.sender
    held = sender.way.held_bytes
    numbers |= {"inflight_bytes": sender.inflight_bytes, "held_bytes": held}
    if each.share is not None:
        numbers["share"] = each.share
    part = "" if each.share is None else f" for {fmt.share(each.share)} of its time"

    sentence = f"{begin}: it is limited by {_words(each.limit)}{part}, with {fmt.size(sender.inflight_bytes)} in flight"
    if held:
        sentence += f" (BDP: {fmt.size(held)})"
    figure: FigureName = "receive_window" if each.limit is Limit.RECEIVER else "cwnd"
    unknown = None
    if each.limit is Limit.BUFFER:
        unknown = "A kernel does not count this limit if the application refills the buffer at once."
    return Statement("sender", f"{sentence}.", numbers, figure, unknown)


def _application(each: LimitedFlow) -> str:
    if not each.sender.is_tcp:
        return "its source sends at that rate"
    part = "" if each.share is None else f", in {fmt.percent(each.share)} of the samples"
    return f"its application writes no more data{part}"


def _of_losses(found: Evidence, each: LimitedFlow, begin: str, numbers: dict[str, Number]) -> Statement:
    lost = found.losses[each.sender.flow]
    outside = each.limit is Limit.LOSS
    count = lost.on_wire if outside else lost.in_queue
    packets = each.sender.goodput_bps * each.sender.seconds / 8 / int(found.run.meta["mss_bytes"]) + count
    numbers |= {"lost_packets": count, "lost_share": count / packets}
    if outside:
        where = f" on the link after {each.port}" if each.port else ""
        how = f"lost{where}, not in a queue"
    else:
        where = f" of {each.port}" if each.port else ""
        how = f"dropped by the queue{where}, although the link is not full"
    sentence = f"{begin}: {fmt.percent(count / packets)} of its packets are {how}, and each loss reduces its window."
    return Statement("losses", sentence, numbers, "cwnd", DERIVED if lost.is_derived else None)
