"""The main cause in one sentence."""

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.diagnosis import LEAST_ADDED_S, Diagnosis
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.flow_words import flow_statement, full
from bufferscope.analysis.explanation.harm import Harm
from bufferscope.analysis.explanation.limits import Limit
from bufferscope.analysis.explanation.port_facts import port_settings, wifi_name
from bufferscope.analysis.explanation.queue_words import LAYERS
from bufferscope.analysis.explanation.standing import StandingQueue
from bufferscope.analysis.explanation.statement import Cause, Number, Statement
from bufferscope.model.disciplines import PURE_LIMITS

_WINDOWS = {
    Limit.RECEIVER: "the receiver's window is smaller than the BDP",
    Limit.BUFFER: "the send buffer is smaller than the BDP",
    Limit.FIXED: "the congestion window stays smaller than the BDP",
}


def verdict(found: Evidence, diagnosis: Diagnosis) -> Statement:
    """The statement that an explanation begins with."""
    if diagnosis.cause is Cause.UNKNOWN:
        return Statement("verdict", f"Cannot tell: {diagnosis.doubt}.", {}, None, "The main cause is not known.")
    if diagnosis.queue:
        return _of_queue(found, diagnosis, diagnosis.queue)
    if diagnosis.cause is Cause.NONE:
        return Statement("verdict", _nothing(found, diagnosis), {}, "rtt" if found.pings else "queue_length")
    if diagnosis.harm:
        return _of_losses(found, diagnosis.harm)
    assert diagnosis.main
    told = flow_statement(found, diagnosis.main)
    name = diagnosis.main.sender.flow
    if diagnosis.cause is Cause.WINDOW:
        sentence = f"{name} does not fill its path: {_WINDOWS[diagnosis.main.limit]}."
    elif diagnosis.cause is Cause.APPLICATION:
        sentence = (
            f"There is no standing queue; {name} does not fill its path because its application writes no more data."
        )
    elif diagnosis.cause is Cause.LOSS:
        where = f" on the link after {diagnosis.main.port}" if diagnosis.main.port else ""
        sentence = f"{name} does not fill its path: packets are lost{where}, not in a queue."
    else:
        where = f" of {diagnosis.main.port}" if diagnosis.main.port else ""
        sentence = f"{name} does not fill its path: the queue{where} drops packets before the link is full."
    return Statement("verdict", sentence, told.numbers, told.figure)


def _of_queue(found: Evidence, diagnosis: Diagnosis, queue: StandingQueue) -> Statement:
    added = fmt.time(queue.delay_s)
    numbers: dict[str, Number] = {"delay_ms": 1e3 * queue.delay_s, "port": queue.port, "layer": str(diagnosis.layer)}
    begin = f"There is a standing queue of {added}" if queue.longest_s else f"Packets wait {added}"
    port = found.ports[queue.port]
    if diagnosis.together > 1:
        sentence = _of_several(diagnosis, queue)
    elif queue.delay_s < LEAST_ADDED_S:
        sentence = _of_bursts(diagnosis, queue)
    elif diagnosis.cause is Cause.RING and wifi_name(found.run.scenario, queue.port):
        sentence = f"{begin} in the Wi-Fi driver of {queue.port}, below the queueing discipline."
    elif diagnosis.cause is Cause.RING:
        bql = "" if _has_bql(found, queue.port) else ", which has no byte queue limits"
        sentence = f"{begin} in the driver's ring of {queue.port}{bql}."
    elif diagnosis.cause is Cause.SHAPER:
        rates = f"{fmt.rate(queue.service_bps)} of the wire's {fmt.rate(queue.rate_bps)}"
        sentence = f"{begin} in {queue.port}, in a shaper: {port.queue['qdisc']} sends {rates}, and more arrives."
        numbers["service_bps"] = queue.service_bps
    else:
        kind = port.queue["qdisc"]
        does = "drops nothing until it is full" if kind in PURE_LIMITS else "does not keep it short"
        sentence = f"{begin} in {queue.port}, in the {LAYERS[str(diagnosis.layer)]}: {kind} {does}."
    return Statement("verdict", sentence, numbers, "queue_length")


def _of_several(diagnosis: Diagnosis, queue: StandingQueue) -> str:
    longest = f"in {queue.port}, {fmt.time(queue.mean_s)} on average"
    return f"The queues of {diagnosis.together} ports together delay the pings; the longest is {longest}."


def _of_bursts(diagnosis: Diagnosis, queue: StandingQueue) -> str:
    """The sentence for a queue that is short for half of the time or more."""
    harm = diagnosis.harm
    bad = f", and {harm.sentence}" if harm and not harm.is_slow else ""
    return (
        f"The queue in {queue.port} comes and goes: it is a standing queue {fmt.percent(queue.standing_share)} of the "
        f"time, and its delay is above {fmt.time(queue.high_s)} {fmt.percent(0.05)} of the time{bad}."
    )


def _of_losses(found: Evidence, bad: Harm) -> Statement:
    """The statement for packets that are lost without a standing queue."""
    begin = f"There is no standing queue, but {bad.sentence}"
    if bad.on_wire:
        sentence = f"{begin}: packets are lost on the link after {bad.port}, not in a queue."
    else:
        kind = found.ports[str(bad.port)].queue["qdisc"]
        sentence = f"{begin}: the queue of {bad.port} ({kind}) drops packets."
    return Statement("verdict", sentence, bad.numbers, "rtt")


def _has_bql(found: Evidence, name: str) -> bool:
    ring = port_settings(found.run.scenario, name).get("ring")
    return ring is not None and "bql" in ring


def _nothing(found: Evidence, diagnosis: Diagnosis) -> str:
    main = diagnosis.main
    if diagnosis.harm:
        return f"There is no standing queue; {diagnosis.harm.sentence}, because even the idle RTT is too long for it."
    if main and main.limit is Limit.START:
        begin = "This run shows nothing wrong"
        return f"{begin}: {main.sender.flow} is still in slow start, and there is no standing queue."
    if main and main.limit is not Limit.LINK:
        return f"Nothing is wrong: there is no standing queue, and the path of {main.sender.flow} is nearly full."
    if main and main.port:
        return f"Nothing is wrong: {full(found, main.port)}, and there is no standing queue."
    return "Nothing is wrong: there is no standing queue, and no long flow is held back."
