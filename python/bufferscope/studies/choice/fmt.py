"""A choice of a queue in words: the same for the terminal and the page."""

import math
from collections.abc import Iterator

from bufferscope.analysis.lengths import RULE, size_command
from bufferscope.analysis.opening import Opening
from bufferscope.base.fmt import number, quantity
from bufferscope.model.network import traffic_named
from bufferscope.studies.agreement.fmt import estimate
from bufferscope.studies.choice.bottleneck import FRAME_BYTES
from bufferscope.studies.choice.judging import CALL, DEVICE, KEPT, Choice, MeasuredCandidate


def opening(choice: Choice) -> Opening:
    """The beginning of the page."""
    verdict, *more = answer(choice)
    return Opening(
        verdict=verdict,
        more=tuple(more),
        title=title(choice),
        columns=("Queue", *headings(choice), ""),
        rows=tuple(map(tuple, rows(choice))),
        marked=choice.measured.index(choice.best),
        commands=(choice.command,) if choice.command else (),
        notes=(*device(choice), *details(choice)),
    )


def title(choice: Choice) -> str:
    """The line whose queue is chosen."""
    bottleneck = choice.bottleneck
    return (
        f"Which queue for {bottleneck.port.name}? {quantity(bottleneck.rate_bps, 'bps')}, "
        f"{quantity(bottleneck.round_trip_ns, 'ns')} without queues: "
        f"the BDP is {number(bottleneck.held_bytes / FRAME_BYTES)} packets"
    )


def headings(choice: Choice) -> list[str]:
    """The names of the columns of numbers."""
    elsewhere, calls = ["other sources"] * bool(choice.bottleneck.elsewhere), ["call MOS"] * _has_calls(choice)
    return ["goodput (Mbit/s)", *elsewhere, "RTT p50 (ms)", "p95", *calls]


def rows(choice: Choice) -> Iterator[list[str]]:
    """Every queue with its numbers, and what is to be said of it."""
    for each in choice.measured:
        elsewhere, calls = (
            [each.elsewhere_mbit] * bool(choice.bottleneck.elsewhere),
            [each.call_mos] * _has_calls(choice),
        )
        values = [each.goodput_mbit, *elsewhere, each.rtt_p50_ms, each.rtt_p95_ms, *calls]
        yield [each.name, *("-" if value is None else estimate(value) for value in values), _remark(choice, each)]


def answer(choice: Choice) -> Iterator[str]:
    """The verdict in words, the queue to take first."""
    verdict, best = choice.verdict, choice.best
    yield f"Take {best.name}: {_why(choice, best)}.{_than_now(choice)}"
    if verdict.as_good and len(verdict.as_good) == len(verdict.rivals) - 1:
        yield "The choice of the queue makes no noticeable difference here, beyond the scatter of the repetitions."
    elif verdict.as_good:
        names = ", ".join(each.name for each in verdict.as_good)
        scatter = "within the scatter of the repetitions, or " if choice.repetitions > 1 else ""
        yield f"As good (the differences are {scatter}too small to notice): {names}."
    if verdict.smallest:
        yield (
            f"The smallest tail-drop queue that keeps {KEPT:.0%} of the largest goodput is {verdict.smallest.name}: "
            f"{number(verdict.smallest.goodput_mbit.mean)} of {number(verdict.most_mbit)} Mbit/s."
        )
    else:
        largest = f"the largest goodput, {number(verdict.most_mbit)} Mbit/s"
        yield f"No tail-drop queue that was tried keeps {KEPT:.0%} of {largest}."


def device(choice: Choice) -> Iterator[str]:
    """What the command means, or why no command is given."""
    port = choice.bottleneck.port
    if choice.command:
        yield f"{DEVICE} is the device of {port.sender} towards {port.receiver}, where the queue is."
    else:
        yield f"Linux cannot be set to {choice.best.name} as it was simulated."


def details(choice: Choice) -> Iterator[str]:
    """What to know about the numbers."""
    if choice.repetitions > 1:
        yield "Means over the repetitions ± half the width of their 95 % confidence interval."
    else:
        yield "One repetition says nothing about chance; run with --repeat 3 or more."
    if command := _exactly(choice):
        yield f"For the lengths between those tried: {command}. ({RULE}.)"
    for other in choice.bottleneck.others:
        yield f"Other traffic has its bottleneck elsewhere: --link {other} chooses the queue there."
    for note in choice.notes:
        yield f"Note: {note}."


def _exactly(choice: Choice) -> str:
    """The call of `size` for the port; empty where its traffic is not one kind of long flows at one rate."""
    bottleneck, scenario = choice.bottleneck, choice.result.runs[0].scenario
    across = [entry for entry in traffic_named(scenario, "tcp") if entry["name"] in bottleneck.carried]
    if len(across) != len(bottleneck.carried) or len({entry["congestion"] for entry in across}) != 1:
        return ""
    if (
        len(bottleneck.port.rate) != 1
        or bottleneck.port.boost
        or bottleneck.port.variation
        or across[0]["congestion"] == "window"
    ):
        return ""
    flows = sum(entry["flows"] for entry in across)
    return size_command(bottleneck.rate_bps, bottleneck.round_trip_ns, flows, across[0]["congestion"])


def _has_calls(choice: Choice) -> bool:
    return any(each.call_mos for each in choice.measured)


def _remark(choice: Choice, each: MeasuredCandidate) -> str:
    said = [
        ("take this", each is choice.best),
        ("as good", each in choice.as_good),
        ("smallest that keeps the goodput", each is choice.smallest),
        ("as in the file", each.candidate.is_own),
    ]
    return ", ".join(words for words, applies in said if applies)


def _why(choice: Choice, best: MeasuredCandidate) -> str:
    """What the best queue gives: to the call, to pings, and to bulk data."""
    told = []
    if CALL in choice.verdict.criteria and best.call_mos:
        told.append(f"the call's mean opinion score is {estimate(best.call_mos)} of at most 4.41")
    if math.isfinite(best.rtt_p95_ms.mean):
        told.append(f"95 % of the pings take at most {number(best.rtt_p95_ms.mean)} ms")
    elif math.isfinite(best.rtt_p50_ms.mean):
        told.append(f"the median RTT is {number(best.rtt_p50_ms.mean)} ms")
    share = best.goodput_mbit.mean / choice.verdict.most_mbit if choice.verdict.most_mbit else 1.0
    told.append(f"it keeps {share:.0%} of the largest goodput")
    most = choice.verdict.most_elsewhere_mbit
    if best.elsewhere_mbit and most:
        names = ", ".join(choice.bottleneck.elsewhere)
        told.append(
            f"the traffic that does not cross it ({names}) keeps {best.elsewhere_mbit.mean / most:.0%} of its own"
        )
    return "; ".join(told)


def _than_now(choice: Choice) -> str:
    own = choice.own
    if own is None or own is choice.best:
        return ""
    values = [f"95th percentile (ms): {number(own.rtt_p95_ms.mean)}"]
    if own.call_mos:
        values.insert(0, f"call MOS: {number(own.call_mos.mean)}")
    return f" The file has {own.name} ({', '.join(values)})."
