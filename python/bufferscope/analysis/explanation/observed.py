"""The explanation of a run that was only observed, as in a capture: round trips and windows, but no ports.

Such a run has no rates, no propagation delays and no queues. The minimum RTT is used as the idle RTT, and goodput times
minimum RTT as the BDP. Which queue the packets wait in is not known.
"""

from collections.abc import Iterator

import polars as pl

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.effects import effects
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.seen import SEEN_FROM, ObservedFlow, seen
from bufferscope.analysis.explanation.senders import Sender
from bufferscope.analysis.explanation.standing import episodes, spans
from bufferscope.analysis.explanation.statement import Cause, Explanation, Number, Statement
from bufferscope.analysis.findings import LEAST_ADDED_MS, LEAST_ADDED_SHARE, LEAST_LOST
from bufferscope.model.figure_names import FigureName
from bufferscope.model.network import NANOSECONDS, OVER_TCP

MUCH_ADDED_S = 0.05
MORE_THAN_HELD = 1.5
"""Data in flight, in BDPs at the minimum RTT, from which on data must be queued."""
UNKNOWN = "The main cause is not known."
SHUT = 0.5
FEWEST_REPEATED = 3
WHERE = "From one end of the path, the queue cannot be located."


def explain_observed(found: Evidence) -> Explanation:
    """The explanation of an observed run."""
    over_tcp = (each for each in found.senders if each.way.entry["kind"] in OVER_TCP)
    main = max(over_tcp, key=lambda each: each.goodput_bps, default=None)
    known = seen(found.run, main) if main else None
    verdict, cause = _verdict(found, known)
    statements = [verdict]
    if known and not known.are_few:
        statements += [*_inflation(known), *_flight(known)]
    statements += [_repeated(each) for each in found.senders if each.retransmits][:4]
    statements.append(Statement("unknown", f"The run was observed from outside. {WHERE}"))
    statements += effects(found)
    flow = main.flow if main and cause is not Cause.UNKNOWN else None
    return Explanation(found.run.id, cause, None, None, flow, tuple(statements))


def _verdict(found: Evidence, main: ObservedFlow | None) -> tuple[Statement, Cause]:
    if main is None:
        return _of_pings(found, bool(found.senders))
    flow = main.sender.flow
    if main.shut_share >= SHUT:
        sentence = f"{flow} is limited by the receiver's window for {fmt.share(main.shut_share)} of its time."
        return Statement("verdict", sentence, {"share": main.shut_share}, "receive_window"), Cause.WINDOW
    if main.are_few:
        why = f"{flow} shows too few round trips ({len(main.times_s)}) to compare them"
        return Statement("verdict", f"Cannot tell: {why}.", {}, "round_trips", UNKNOWN), Cause.UNKNOWN
    if _is_much(main.added_s, main.least_s) and main.held_times >= MORE_THAN_HELD:
        sentence = (
            f"Data of {flow} is queued on the path: its RTT is {fmt.time(main.added_s)} above the minimum, "
            f"{fmt.time(main.least_s)}, and its data in flight is {fmt.times(main.held_times)} the BDP."
        )
        figure: FigureName = "rtt_window" if main.sees_flight else "round_trips"
        return Statement("verdict", sentence, {"delay_ms": 1e3 * main.added_s}, figure, WHERE), Cause.QUEUE
    if main.sender.retransmits >= FEWEST_REPEATED:
        why = f"{flow} retransmits while its RTT stays short: because of a lossy link or an AQM"
    else:
        why = f"the RTT of {flow} stays short, so its application or its own window may be the limit"
    return Statement("verdict", f"Cannot tell: {why}.", {}, "rtt_window", UNKNOWN), Cause.UNKNOWN


def _of_pings(found: Evidence, has_load: bool) -> tuple[Statement, Cause]:
    """The verdict without the round trips of a connection."""
    asked = next(iter(found.pings), None)
    if asked is None:
        why = "neither round trips of connections nor pings were observed"
        if not found.run.round_trips.is_empty():
            why = "round trips of connections were observed, but no connection long enough for two samples of its state"
        return Statement("verdict", f"Cannot tell: {why}.", unknown=UNKNOWN), Cause.UNKNOWN
    added_s = asked.added_s(0.5)
    numbers: dict[str, Number] = {"own_ms": 1e3 * asked.own_s}
    if added_s == float("inf"):
        return Statement("verdict", "Cannot tell: more than half of the pings have no answer."), Cause.UNKNOWN
    numbers["delay_ms"] = 1e3 * added_s
    added = f"the median RTT is {fmt.time(added_s)} above the minimum, {fmt.time(asked.own_s)}"
    if asked.lost_share >= LEAST_LOST:
        added += f", and {fmt.percent(asked.lost_share)} of the pings have no answer"
        numbers["lost_share"] = asked.lost_share
    if _is_much(added_s, asked.own_s) and not has_load and (times := _rising(found)):
        sentence = (
            f"The RTT rises {times}, as if a load filled a queue: {added}, so packets wait somewhere on the path, or "
            "take another path."
        )
        return Statement("verdict", sentence, numbers, "rtt", f"The load was not observed. {WHERE}"), Cause.QUEUE
    if _is_much(added_s, asked.own_s) and has_load:
        sentence = f"Under load, {added}: packets wait somewhere on the path."
        return Statement("verdict", sentence, numbers, "rtt", WHERE), Cause.QUEUE
    sentence = f"Cannot tell: {added}, and other traffic on the path was not observed."
    return Statement("verdict", sentence, numbers, "rtt", WHERE), Cause.UNKNOWN


def _rising(found: Evidence) -> str:
    """When the pings of a run without known load are longer; empty if they are so all the time, or never."""
    scenario = found.run.scenario
    begin_ns, end_ns = scenario["warmup_ns"], scenario["duration_ns"]
    goes_on = found.run.probes.filter(pl.col("sent_ns") > end_ns).height > 0
    if not begin_ns and not goes_on:
        return ""
    until = f"to {fmt.instant(end_ns / NANOSECONDS)}" if goes_on else "on"
    return f"from {fmt.instant(begin_ns / NANOSECONDS)} {until}"


def _is_much(added_s: float, own_s: float) -> bool:
    return 1e3 * added_s >= LEAST_ADDED_MS and (added_s >= LEAST_ADDED_SHARE * own_s or added_s >= MUCH_ADDED_S)


def _inflation(main: ObservedFlow) -> Iterator[Statement]:
    """Since when the round trips are longer, and where they were seen."""
    added_s = main.smoothed_s - main.least_s
    known_s = float(main.times_s[-1] - main.times_s[0]) if len(main.times_s) > 1 else 0.0
    found = spans(main.times_s, added_s) if known_s else []
    if found:
        begin_s, end_s = max(found, key=lambda span: span[1] - span[0])
        _, share = episodes(main.times_s, added_s)
        sentence = (
            f"Its RTT is at least 5 ms above the minimum for {fmt.share(share)} of the "
            f"{fmt.length(known_s)} in which it is known; the longest period without a break is from "
            f"{fmt.instant(begin_s)} to {fmt.instant(end_s)}."
        )
        numbers: dict[str, Number] = {"onset_s": begin_s, "end_s": end_s, "known_s": known_s, "standing_share": share}
        yield Statement("since", sentence, numbers, "rtt_window")
    if main.half in SEEN_FROM:
        yield Statement("where", SEEN_FROM[main.half], {"half": main.half}, "round_trips")


def _flight(main: ObservedFlow) -> Iterator[Statement]:
    if not main.held_bytes or not main.inflight_bytes:
        return
    begin = f"It has {fmt.size(main.inflight_bytes)} in flight"
    if not main.sees_flight:
        begin += " according to its goodput and RTT (Little's law)"
    sentence = (
        f"{begin}, {fmt.times(main.held_times)} the BDP (its goodput times the minimum RTT: "
        f"{fmt.size(main.held_bytes)})."
    )
    numbers: dict[str, Number] = {"inflight_bytes": main.inflight_bytes, "held_bytes": main.held_bytes}
    unknown = "The minimum RTT may include queueing delay, so the BDP may be smaller."
    yield Statement("window", sentence, numbers, "rtt_window" if main.sees_flight else "round_trips", unknown)


def _repeated(each: Sender) -> Statement:
    sentence = f"{each.flow} gets {fmt.rate(each.goodput_bps)} and retransmits {each.retransmits} segments."
    numbers: dict[str, Number] = {"flow": each.flow, "goodput_bps": each.goodput_bps, "retransmits": each.retransmits}
    unknown = "Whether they were lost or only late, and where, is not known."
    return Statement("losses", sentence, numbers, "cwnd", unknown)
