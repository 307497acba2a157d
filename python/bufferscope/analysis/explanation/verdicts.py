"""The main cause in one sentence."""

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.diagnosis import LEAST_ADDED_S, Diagnosis
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.flow_words import flow_statement, full
from bufferscope.analysis.explanation.harm import Harm
from bufferscope.analysis.explanation.limits import Limit
from bufferscope.analysis.explanation.places import PURE_LIMITS, port_settings, wifi_name
from bufferscope.analysis.explanation.queue_words import LAYERS
from bufferscope.analysis.explanation.standing import Standing
from bufferscope.analysis.explanation.statement import Cause, Number, Statement

_WINDOWS = {
    Limit.RECEIVER: "the receiver's window is smaller than what the path holds",
    Limit.BUFFER: "the sender's buffer is smaller than what the path holds",
    Limit.FIXED: "the sender's congestion window stays smaller than what the path holds",
}


def verdict(found: Evidence, diagnosis: Diagnosis) -> Statement:
    """The statement that an explanation begins with."""
    if diagnosis.cause is Cause.UNKNOWN:
        return Statement("verdict", f"Cannot tell: {diagnosis.doubt}.", {}, None, "What the main cause is.")
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
        sentence = f"No queue stands; {name} does not fill its path because its application writes no more."
    elif diagnosis.cause is Cause.LOSS:
        where = f" after {diagnosis.main.port}" if diagnosis.main.port else ""
        sentence = f"{name} does not fill its path: packets are lost{where}, where no queue drops them."
    else:
        where = f" of {diagnosis.main.port}" if diagnosis.main.port else ""
        sentence = f"{name} does not fill its path: the queue{where} drops packets before the link is full."
    return Statement("verdict", sentence, told.numbers, told.figure)


def _of_queue(found: Evidence, diagnosis: Diagnosis, queue: Standing) -> Statement:
    added = fmt.time(queue.delay_s)
    numbers: dict[str, Number] = {"delay_ms": 1e3 * queue.delay_s, "port": queue.port, "layer": str(diagnosis.layer)}
    begin = f"A queue of {added} stands" if queue.longest_s else f"Packets wait {added}"
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
        sentence = (
            f"{begin} in {queue.port} in front of a shaper: {port.queue['qdisc']} passes on {rates}, "
            "and more is sent to it."
        )
        numbers["service_bps"] = queue.service_bps
    else:
        kind = port.queue["qdisc"]
        does = "drops nothing until it is full" if kind in PURE_LIMITS else "does not keep it short"
        sentence = f"{begin} in {queue.port}, in the {LAYERS[str(diagnosis.layer)]}: {kind} {does}."
    return Statement("verdict", sentence, numbers, "queue_length")


def _of_several(diagnosis: Diagnosis, queue: Standing) -> str:
    largest = f"{queue.port} with {fmt.time(queue.mean_s)} on average"
    return f"Queues of {diagnosis.together} ports delay the pings together; the largest is that of {largest}."


def _of_bursts(diagnosis: Diagnosis, queue: Standing) -> str:
    """Of a queue that is short for half of the time or more."""
    harm = diagnosis.harm
    bad = f", and {harm.sentence}" if harm and not harm.is_slow else ""
    return (
        f"A queue comes and goes in {queue.port}: it stands for {fmt.percent(queue.standing_share)} of the time, "
        f"with {fmt.time(queue.high_s)} or more for a twentieth of it{bad}."
    )


def _of_losses(found: Evidence, bad: Harm) -> Statement:
    """Of packets that are lost although no queue stands."""
    if bad.on_wire:
        sentence = f"No queue stands, but {bad.sentence}: they are lost after {bad.port}, where no queue drops them."
    else:
        kind = found.ports[str(bad.port)].queue["qdisc"]
        sentence = f"No queue stands, but {bad.sentence}: the queue of {bad.port} ({kind}) drops them."
    return Statement("verdict", sentence, bad.numbers, "rtt")


def _has_bql(found: Evidence, name: str) -> bool:
    ring = port_settings(found.run.scenario, name).get("ring")
    return ring is not None and "bql" in ring


def _nothing(found: Evidence, diagnosis: Diagnosis) -> str:
    main = diagnosis.main
    if diagnosis.harm:
        return (
            f"No queue stands; {diagnosis.harm.sentence}, as it would on the idle path, whose own delay is that long."
        )
    if main and main.limit is Limit.START:
        return f"Nothing is wrong that this run shows: {main.sender.flow} is still in slow start, and no queue stands."
    if main and main.limit is not Limit.LINK:
        return f"Nothing is wrong: no queue stands, and the path of {main.sender.flow} is nearly full."
    if main and main.port:
        return f"Nothing is wrong: {full(found, main.port)}, and no queue stands."
    return "Nothing is wrong: no queue stands, and no flow that lasts is held back."
