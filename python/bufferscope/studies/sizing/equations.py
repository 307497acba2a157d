"""The documents' equations: each answer with its formula, the numbers in it, and its source."""

import math
from dataclasses import dataclass

from bufferscope.base.fmt import quantity
from bufferscope.studies.sizing.line import SizedLine

FEW_FLOWS = 20
"""Below this many flows, the square root of their number is no rule: they tend to halve their windows together."""


@dataclass(frozen=True)
class EquationResult:
    """What an equation says of a line."""

    name: str
    """What the equation gives, in a few words."""
    value: float
    """The value in `unit`."""
    unit: str
    """`bytes` or `s`."""
    formula: str
    """The equation, in symbols."""
    working: str
    """The formula with the line's numbers."""
    source: str
    """Who published it."""
    packets: int | None = None
    """The value in full packets, if it is a size."""
    note: str = ""
    """When it does not hold."""


def answers(line: SizedLine) -> list[EquationResult]:
    """Every equation's answer for a line, in the order in which they build on one another."""
    bdp = _bdp(line)
    root = _square_root(line)
    behind = {bdp.packets or 1: "BDP"}
    behind.setdefault(root.packets or 1, "square root")
    return [bdp, root, *(_rtt(line, packets, called) for packets, called in behind.items()), _drain(line)]


def drain_s(size_bytes: float, rate_bps: float) -> float:
    """How long a full buffer takes to empty, and thus delays a packet that arrives last.

    >>> drain_s(125_000, 1_000_000)
    1.0
    """
    return size_bytes * 8 / rate_bps


def round_trip_s(line: SizedLine, queued_packets: int, access_bps: float = math.inf) -> float:
    """The round trip with a queue: Q*S/C + propagation + 2S/C1 + 2S/C2.

    The queue drains into the bottleneck, so C = C2; C1 is the access link, by default so fast that its term vanishes.
    """
    size_bits = line.frame_bytes * 8
    serialization_s = 2 * size_bits / access_bps + 2 * size_bits / line.rate_bps
    return queued_packets * size_bits / line.rate_bps + line.rtt_ns / 1e9 + serialization_s


def _bdp(line: SizedLine) -> EquationResult:
    return EquationResult(
        name="Bandwidth-delay product",
        value=line.bdp_bytes,
        unit="bytes",
        formula="BDP = rate * RTT",
        working=f"{_rate(line)} * {_time(line.rtt_ns / 1e9)}",
        source="Villamizar and Song, High performance TCP in ANSNET, 1994; Gettys and Nichols, Dark buffers, 2011",
        packets=line.packets(line.bdp_bytes),
        note="enough for one flow that halves its window at a loss (Reno); CUBIC falls back less and needs 3/7 of it",
    )


def _square_root(line: SizedLine) -> EquationResult:
    value = line.bdp_bytes / math.sqrt(line.flows)
    flows = "flow" if line.flows == 1 else "flows"
    few = line.flows < FEW_FLOWS
    return EquationResult(
        name="Square root of the flows",
        value=value,
        unit="bytes",
        formula="BDP / sqrt(N)",
        working=f"{_told(line.bdp_bytes, 'bytes')} / sqrt({line.flows})",
        source="Appenzeller, Keslassy and McKeown, Sizing router buffers, 2004",
        packets=line.packets(value),
        note=(f"not proven for {line.flows} {flows}: " if few else "")
        + "it assumes many long flows that are not synchronised; few flows, or flows that lose together, need more",
    )


def _rtt(line: SizedLine, queued: int, called: str) -> EquationResult:
    sent = f"{line.frame_bytes * 8} bit / {_rate(line)}"
    return EquationResult(
        name=f"Round trip behind a full queue of {queued} packets ({called})",
        value=round_trip_s(line, queued),
        unit="s",
        formula="RTT = Q*S/C + propagation + 2S/C1 + 2S/C2",
        working=f"{queued} * {sent} + {_time(line.rtt_ns / 1e9)} + 0 + 2 * {sent}",
        source="Park, Bufferbloat assignment report; C1, the access link, is taken as infinitely fast",
    )


def _drain(line: SizedLine) -> EquationResult:
    """The drain time of the given buffer; of the bandwidth-delay product if none is given."""
    size = line.bdp_bytes if line.buffer_bytes is None else line.buffer_bytes
    whose = "the BDP" if line.buffer_bytes is None else "the given buffer"
    over = size / line.bdp_bytes
    return EquationResult(
        name=f"Drain time of {whose}",
        value=drain_s(size, line.rate_bps),
        unit="s",
        formula="delay = buffer / rate",
        working=f"{_told(size, 'bytes')} / {_rate(line)}",
        source="Gettys and Nichols, Dark buffers, 2011",
        note=""
        if line.buffer_bytes is None
        else f"{over:.3g} times the BDP ({line.packets(size)} full packets): the delay that it adds when it is full",
    )


def _rate(line: SizedLine) -> str:
    return _told(line.rate_bps, "bps")


def _time(seconds: float) -> str:
    return _told(seconds * 1e9, "ns")


def _told(value: float, unit: str) -> str:
    """A quantity in plain characters: the workings are read by programs, too."""
    return quantity(value, unit).replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", "")
