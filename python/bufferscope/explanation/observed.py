"""What can be told of a run that was only observed, as from a capture: round trips and windows, but no ports.

Such a run has no rates, no propagation delays and no queues. The least round trip that was seen stands for the idle
path, and goodput times that for what the path holds. From one end nobody can tell in which queue packets wait.
"""

from collections.abc import Iterator

import polars as pl

from bufferscope.engines import ENGINES
from bufferscope.explanation import words
from bufferscope.explanation.effects import effects
from bufferscope.explanation.evidence import Evidence
from bufferscope.explanation.senders import Sender
from bufferscope.explanation.standing import episodes
from bufferscope.explanation.statement import Cause, Explanation, Number, Statement
from bufferscope.findings import LEAST_ADDED_MS, LEAST_ADDED_SHARE, LEAST_LOST
from bufferscope.metrics.network import NANOSECONDS
from bufferscope.metrics.records import RunRecords

MUCH_ADDED_S = 0.05
MORE_THAN_HELD = 1.5
"""In flight, in bandwidth-delay products at the least round trip: from here on, data must stand somewhere."""
SHUT = 0.5
FEWEST_REPEATED = 3
WHERE = "Which queue it is, and where on the path, cannot be told from one end of the path."


def is_observed(run: RunRecords) -> bool:
    """Whether no engine of this package carried the packets."""
    return run.meta["engine"] not in ENGINES


def explain_observed(found: Evidence) -> Explanation:
    """The explanation of an observed run."""
    main = max((each for each in found.senders if each.is_tcp), key=lambda each: each.goodput_bps, default=None)
    verdict, cause = _verdict(found, main)
    statements = [verdict]
    if main and main.least_rtt_s and main.srtt_s:
        statements += [*_inflation(found, main), *_flight(main)]
    statements += [_repeated(each) for each in found.senders if each.retransmits][:4]
    statements.append(Statement("unknown", f"The run was observed from outside. {WHERE}"))
    statements += effects(found)
    flow = main.flow if main and cause is not Cause.UNKNOWN else None
    return Explanation(found.run.id, cause, None, None, flow, tuple(statements))


def _verdict(found: Evidence, main: Sender | None) -> tuple[Statement, Cause]:
    if main is None or not main.least_rtt_s or not main.srtt_s:
        return _of_pings(found, bool(found.senders))
    added_s = main.srtt_s - main.least_rtt_s
    if main.receiver_share >= SHUT:
        sentence = (
            f"{main.flow} is held back by the receiver's window for {words.share(main.receiver_share)} of its time."
        )
        return Statement("verdict", sentence, {"share": main.receiver_share}, "receive_window"), Cause.WINDOW
    if _is_much(added_s, main.least_rtt_s) and _held_times(main) >= MORE_THAN_HELD:
        sentence = (
            f"Data of {main.flow} stands on the path: its round trips are {words.time(added_s)} longer than the least, "
            f"{words.time(main.least_rtt_s)}, with {words.times(_held_times(main))} in flight what the path then holds."
        )
        return Statement("verdict", sentence, {"delay_ms": 1e3 * added_s}, "rtt_window", WHERE), Cause.QUEUE
    if main.retransmits >= FEWEST_REPEATED:
        why = f"{main.flow} repeats segments while its round trips stay short: a lossy wire or a queue manager"
    else:
        why = f"the round trips of {main.flow} stay short, and its application or its own window may be the limit"
    return Statement("verdict", f"Cannot tell: {why}.", {}, "rtt_window", "What the main cause is."), Cause.UNKNOWN


def _of_pings(found: Evidence, has_load: bool) -> tuple[Statement, Cause]:
    """The verdict without the round trips of a connection."""
    asked = next(iter(found.pings), None)
    if asked is None:
        why = "neither round trips of connections nor pings were observed"
        return Statement("verdict", f"Cannot tell: {why}.", unknown="What the main cause is."), Cause.UNKNOWN
    added_s = asked.added_s(0.5)
    numbers: dict[str, Number] = {"own_ms": 1e3 * asked.own_s}
    if added_s == float("inf"):
        return Statement("verdict", "Cannot tell: more than half of the pings have no answer."), Cause.UNKNOWN
    numbers["delay_ms"] = 1e3 * added_s
    least = f"half of the pings take {words.time(added_s)} longer than the fastest, {words.time(asked.own_s)}"
    if asked.lost_share >= LEAST_LOST:
        least += f", and {words.percent(asked.lost_share)} of them have no answer"
        numbers["lost_share"] = asked.lost_share
    if _is_much(added_s, asked.own_s) and not has_load and (times := _rising(found)):
        sentence = (
            f"The pings rise {times}, as when a load fills a queue: {least}, so packets wait somewhere on the path, or "
            "take another one."
        )
        return Statement(
            "verdict", sentence, numbers, "rtt", f"What was sent then was not observed. {WHERE}"
        ), Cause.QUEUE
    if _is_much(added_s, asked.own_s) and has_load:
        sentence = f"Under load, {least}: packets wait somewhere on the path."
        return Statement("verdict", sentence, numbers, "rtt", WHERE), Cause.QUEUE
    sentence = f"Cannot tell: {least}, and what else was on the path was not observed."
    return Statement("verdict", sentence, numbers, "rtt", WHERE), Cause.UNKNOWN


def _rising(found: Evidence) -> str:
    """When the pings of a run without known load are longer; empty if they are so all the time, or never."""
    scenario = found.run.scenario
    begin_ns, end_ns = scenario["warmup_ns"], scenario["duration_ns"]
    goes_on = found.run.probes.filter(pl.col("sent_ns") > end_ns).height > 0
    if not begin_ns and not goes_on:
        return ""
    until = f"to {words.instant(end_ns / NANOSECONDS)}" if goes_on else "on"
    return f"from {words.instant(begin_ns / NANOSECONDS)} {until}"


def _is_much(added_s: float, own_s: float) -> bool:
    return 1e3 * added_s >= LEAST_ADDED_MS and (added_s >= LEAST_ADDED_SHARE * own_s or added_s >= MUCH_ADDED_S)


def _held_times(main: Sender) -> float:
    held = main.goodput_bps * (main.least_rtt_s or 0) / 8
    return main.inflight_bytes / held if held else 0.0


def _inflation(found: Evidence, main: Sender) -> Iterator[Statement]:
    """Since when the round trips are longer."""
    rows = found.run.flows.filter(pl.col("flow") == main.flow).drop_nulls("srtt_ns").sort("t_ns")
    times_s = rows["t_ns"].to_numpy() / NANOSECONDS
    added_s = rows["srtt_ns"].to_numpy() / NANOSECONDS - (main.least_rtt_s or 0)
    onset_s, share = episodes(times_s, added_s) if len(times_s) > 1 else (None, 0.0)
    if onset_s is not None:
        sentence = (
            f"Its round trips are longer by 5 ms or more since {words.instant(onset_s)}, "
            f"for {words.share(share)} of its time."
        )
        yield Statement("since", sentence, {"onset_s": onset_s, "standing_share": share}, "rtt_window")


def _flight(main: Sender) -> Iterator[Statement]:
    held = main.goodput_bps * (main.least_rtt_s or 0) / 8
    if not held or not main.inflight_bytes:
        return
    sentence = (
        f"It has {words.size(main.inflight_bytes)} in flight, {words.times(_held_times(main))} what the path holds at "
        f"its goodput and the least round trip ({words.size(held)})."
    )
    numbers: dict[str, Number] = {"inflight_bytes": main.inflight_bytes, "held_bytes": held}
    unknown = "The least round trip that was seen may itself have waited, so the path may hold less."
    yield Statement("window", sentence, numbers, "rtt_window", unknown)


def _repeated(each: Sender) -> Statement:
    sentence = f"{each.flow} gets {words.rate(each.goodput_bps)} and sends {each.retransmits} segments again."
    numbers: dict[str, Number] = {"flow": each.flow, "goodput_bps": each.goodput_bps, "retransmits": each.retransmits}
    return Statement("losses", sentence, numbers, "cwnd", "Where they were lost, or whether they were only late.")
