"""The size of a buffer in words: the same for the terminal and the page."""

from collections.abc import Iterator

from bufferscope.analysis.lengths import RULE
from bufferscope.analysis.opening import Opening
from bufferscope.base.fmt import number, quantity
from bufferscope.studies.agreement.fmt import estimate
from bufferscope.studies.sizing.line import SizedLine
from bufferscope.studies.sizing.search import MeasuredQueue, SimulatedSizing
from bufferscope.studies.sizing.settings import DEVICE
from bufferscope.studies.sizing.sizing import Sizing

HEADINGS = ("goodput (Mbit/s)", "share", "RTT p95 (ms)", "in the queue p95 (ms)")
"""The columns of the table of what was simulated, between the queue's name and the remark."""
WHERE = f"{DEVICE} is the device towards the bottleneck, where the queue is."


def opening(sized: Sizing, found: SimulatedSizing) -> Opening:
    """The beginning of the page."""
    verdict, *more = answer(sized, found)
    tried = [*found.sizes, *found.managed]
    return Opening(
        verdict=verdict,
        more=tuple(more),
        title=f"Checked by simulation: {about(sized.line)}",
        columns=("Queue", *HEADINGS, ""),
        rows=tuple(tuple(row(found, each)) for each in tried),
        marked=tried.index(found.smallest),
        commands=tuple(command for _, command in sized.settings),
        notes=(WHERE, *notes(sized), *(f"{each.name}: {each.reason}." for each, _ in sized.settings)),
    )


def about(line: SizedLine) -> str:
    """The line and its load."""
    flows = f"{line.flows} {'flow' if line.flows == 1 else 'flows'} of {line.congestion}"
    return f"{quantity(line.rate_bps, 'bps')}, {quantity(line.rtt_ns, 'ns')} without queues, {flows}"


def row(found: SimulatedSizing, each: MeasuredQueue) -> list[str]:
    """A queue with its numbers, and what is to be said of it."""
    share = f"{100 * found.share(each):.1f} %"
    return [
        each.name,
        estimate(each.goodput_mbit),
        share,
        estimate(each.rtt_p95_ms),
        estimate(each.sojourn_p95_ms),
        _remark(found, each),
    ]


def answer(sized: Sizing, found: SimulatedSizing) -> Iterator[str]:
    """What the simulations say, the size first."""
    smallest, target = found.smallest, f"{100 * sized.line.target:.4g} %"
    yield (
        f"The smallest queue that keeps {target} of the very long queue's goodput is {smallest.name} "
        f"({100 * found.share(smallest):.2f} %). A packet is in it for {number(smallest.sojourn_p95_ms.mean)} ms (p95)."
    )
    if found.below:
        yield f"One packet less keeps {100 * found.share(found.below):.2f} %."
    held = sized.line.packets(sized.line.bdp_bytes)
    if held != smallest.limit_packets:
        yield f"The bandwidth-delay product is {held} packets. ({RULE}.)"


def notes(sized: Sizing) -> Iterator[str]:
    """What to know about the line."""
    return (f"Note: {note}." for note in sized.notes)


def _remark(found: SimulatedSizing, each: MeasuredQueue) -> str:
    if each is found.smallest:
        return "smallest that keeps the goodput"
    return "the very long queue: 100 %" if each is found.longest else ""
