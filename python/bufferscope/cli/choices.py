"""A choice of a queue for people and for programs."""

import math
from collections.abc import Iterator

from rich.text import Text

from bufferscope.agreement.wording import estimate
from bufferscope.choice import Choice, Measured
from bufferscope.choice.judging import CALL, DEVICE, KEPT
from bufferscope.choice.place import FRAME_BYTES
from bufferscope.cli.documents import estimate_values
from bufferscope.cli.tables import number
from bufferscope.cli.terminal import console, plain_table
from bufferscope.report.words import quantity


def print_choice(choice: Choice) -> None:
    """The table of all queues, the verdict in words, and the command."""
    place = choice.place
    held = place.held_bytes / FRAME_BYTES
    title = (
        f"Which queue for {place.port.name}? {quantity(place.rate_bps, 'bps')}, "
        f"{quantity(place.round_trip_ns, 'ns')} without queues: the path holds {number(held)} packets"
    )
    table = plain_table(title)
    table.add_column("Queue", overflow="fold")
    headings = ["goodput (Mbit/s)", "RTT p50 (ms)", "p95", *["call MOS"] * _has_calls(choice)]
    for heading in headings:
        table.add_column(heading, justify="right")
    table.add_column("")
    for each in choice.measured:
        values = [each.goodput_mbit, each.rtt_p50_ms, each.rtt_p95_ms, *[each.call_mos] * _has_calls(choice)]
        row = [each.name, *("-" if value is None else estimate(value) for value in values), _remark(choice, each)]
        table.add_row(*map(Text, row), style="bold" if each is choice.best else None)
    console().print(table)
    for sentence in sentences(choice):
        console().print(Text(sentence))


def sentences(choice: Choice) -> Iterator[str]:
    """The verdict in words, one sentence or command a line."""
    verdict, best = choice.verdict, choice.best
    if choice.repetitions > 1:
        yield "Means over the repetitions ± half the width of their 95 % confidence interval."
    if verdict.smallest:
        yield (
            f"The smallest tail-drop queue that keeps {KEPT:.0%} of the largest goodput is {verdict.smallest.name}: "
            f"{number(verdict.smallest.goodput_mbit.mean)} of {number(verdict.most_mbit)} Mbit/s."
        )
    else:
        largest = f"the largest goodput, {number(verdict.most_mbit)} Mbit/s"
        yield f"No tail-drop queue that was tried keeps {KEPT:.0%} of {largest}."
    yield f"Take {best.name}: {_why(choice, best)}.{_than_now(choice)}"
    if verdict.as_good and len(verdict.as_good) == len(verdict.rivals) - 1:
        yield "No choice of a queue here makes a difference beyond the repetitions' scatter that anybody would notice."
    elif verdict.as_good:
        names = ", ".join(each.name for each in verdict.as_good)
        scatter = "within what the repetitions scatter, or " if choice.repetitions > 1 else ""
        yield f"As good (the differences are {scatter}too small to notice): {names}."
    if choice.repetitions == 1:
        yield "One repetition says nothing about chance; run with --repeat 3 or more."
    place = choice.place
    if choice.command:
        yield f"  {choice.command}"
        yield f"({DEVICE} is the device of {place.port.sender} towards {place.port.receiver}, where the queue is.)"
    else:
        yield f"Linux cannot be set to {best.name} as it was simulated."
    for other in place.others:
        yield f"Other traffic has its bottleneck elsewhere: --link {other} chooses the queue there."
    for note in choice.notes:
        yield f"Note: {note}."


def document(choice: Choice) -> dict[str, object]:
    """A choice as JSON; a censored or unknown value is null."""
    verdict, place = choice.verdict, choice.place
    return {
        "experiment": choice.result.experiment,
        "port": place.port.name,
        "link": place.port.link,
        "direction": place.side,
        "rate_bps": place.rate_bps,
        "round_trip_ms": place.round_trip_ns / 1e6,
        "path_holds_bytes": round(place.held_bytes),
        "criteria": [criterion.name for criterion in verdict.criteria],
        "best": choice.best.name,
        "as_good": [each.name for each in verdict.as_good],
        "smallest_tail_drop": verdict.smallest and verdict.smallest.name,
        "own": choice.own and choice.own.name,
        "command": choice.command,
        "queues": [
            {
                "name": each.name,
                "queue": dict(each.candidate.queue),
                "tc": each.tc or None,
                "goodput_mbit": estimate_values(each.goodput_mbit),
                "rtt_p50_ms": estimate_values(each.rtt_p50_ms),
                "rtt_p95_ms": estimate_values(each.rtt_p95_ms),
                "call_mos": each.call_mos and estimate_values(each.call_mos),
            }
            for each in choice.measured
        ],
        "notes": list(choice.notes),
        "elsewhere": list(place.others),
        "runs": [str(run.path) for run in choice.result.runs],
    }


def _has_calls(choice: Choice) -> bool:
    return any(each.call_mos for each in choice.measured)


def _remark(choice: Choice, each: Measured) -> str:
    said = [
        ("take this", each is choice.best),
        ("as good", each in choice.as_good),
        ("smallest that keeps the goodput", each is choice.smallest),
        ("as in the file", each.candidate.is_own),
    ]
    return ", ".join(words for words, applies in said if applies)


def _why(choice: Choice, best: Measured) -> str:
    """What the best queue gives: to the call, to pings, and to bulk data."""
    told = []
    if CALL in choice.verdict.criteria and best.call_mos:
        told.append(f"the call's mean opinion score is {estimate(best.call_mos)} of at most 4.41")
    if math.isfinite(best.rtt_p95_ms.mean):
        told.append(f"95 % of the pings take at most {number(best.rtt_p95_ms.mean)} ms")
    elif math.isfinite(best.rtt_p50_ms.mean):
        told.append(f"half of the pings take at most {number(best.rtt_p50_ms.mean)} ms")
    share = best.goodput_mbit.mean / choice.verdict.most_mbit if choice.verdict.most_mbit else 1.0
    told.append(f"it keeps {share:.0%} of the largest goodput")
    return "; ".join(told)


def _than_now(choice: Choice) -> str:
    own = choice.own
    if own is None or own is choice.best:
        return ""
    values = [f"95th percentile (ms): {number(own.rtt_p95_ms.mean)}"]
    if own.call_mos:
        values.insert(0, f"call MOS: {number(own.call_mos.mean)}")
    return f" The file has {own.name} ({', '.join(values)})."
