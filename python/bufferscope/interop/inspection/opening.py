"""What the page of a capture begins with: the verdict, the table of connections, and what to type next."""

from collections.abc import Sequence
from shlex import quote

from bufferscope.analysis.explanation import Cause, Explanation
from bufferscope.analysis.opening import Opening
from bufferscope.base.fmt import number
from bufferscope.interop.inspection.connections import HALVES, Connection
from bufferscope.interop.inspection.inspecting import Inspection

MOST_ROWS = 20
COLUMNS = {
    "kB": "delivered_kb",
    "Mbit/s": "goodput_mbit",
    "RTT min (ms)": "rtt_min_ms",
    "median (ms)": "rtt_median_ms",
    "p95 (ms)": "rtt_p95_ms",
}
"""The numbers of the table, by the names of the facts."""
RATE = "The rate is the goodput that the capture shows; if you know the rate of your line, use that."


def opening(inspection: Inspection, found: Sequence[Connection], explained: Explanation) -> Opening:
    """The answer of `bufferscope inspect`. Pings have figures of their own, further down."""
    command, note = next_command(inspection, found, explained)
    halves = dict.fromkeys(each.round_trips.half for each in found if each.round_trips)
    seen = [f"RTT from {half}: {HALVES[half]}." for half in halves]
    more = len(found) - MOST_ROWS
    notes = [*seen, *([f"{more} further connections are in the document of --json."] if more > 0 else []), *note]
    return Opening(
        verdict=explained.verdict,
        more=tuple(each.sentence for each in explained.of("since", "where", "window", "losses", "call")),
        title="Connections, by direction of the data" if found else "No connection carried data",
        columns=("Flow", "Connection", "From", "To", *COLUMNS, "RTT from", "Sent again"),
        rows=tuple(_row(each) for each in found[:MOST_ROWS]),
        marked=next((index for index, each in enumerate(found[:MOST_ROWS]) if each.flow == explained.flow), None),
        commands=(command,),
        notes=tuple(notes),
    )


def _row(each: Connection) -> tuple[str, ...]:
    numbers = ("–" if (value := each.facts[fact]) is None else number(value) for fact in COLUMNS.values())
    source = each.round_trips.source if each.round_trips else "–"
    again = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in each.retransmissions.items())
    return (each.flow, each.name, each.sender, each.receiver, *numbers, source, again or "0")


def next_command(
    inspection: Inspection, found: Sequence[Connection], explained: Explanation
) -> tuple[str, tuple[str, ...]]:
    """The line to type next, and what to know about it."""
    main = next((each for each in found if each.flow == explained.flow), None)
    if explained.cause is Cause.QUEUE and main:
        rate, rtt = main.facts["goodput_mbit"], main.facts["rtt_min_ms"]
        if rate and rtt:
            return f"bufferscope size --rate {rate:.3g}mbit --rtt {rtt:.3g}ms", (RATE,)
    return f"bufferscope explain {quote(str(inspection.run.path))}", ()
