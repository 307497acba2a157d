"""Commands of `tc` and `ip` that shape one direction of an interface.

`cake` if the kernel has it. `fq_codel` needs a shaper in front of it, for which `tbf` suffices. A kernel with neither
gets the same shaper with a short tail-drop queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bufferscope.analysis.fixing.framing import Framing
from bufferscope.analysis.fixing.rates import ShaperRate
from bufferscope.store.verdict import Direction

CAKE, FQ_CODEL, SHORT = "cake", "fq_codel", "bfifo"
QDISCS = (CAKE, FQ_CODEL, SHORT)
"""What these commands can set, the best first."""
HANDLE = "bf:"
"""The handle of the shapers here; it shows in `tc qdisc show`."""
FULL = 1514
"""A full packet with its Ethernet header, in bytes."""
LEAST_PACKETS = 10
"""The shortest tail-drop queue."""
FOR_EACH_FLOW = 3
"""Packets of a tail-drop queue for each flow: with fewer in flight, TCP recovers from most losses only by time-outs
(RFC 5827)."""
ROOM = FULL // 2
"""Bytes that a full packet leaves free in a queue with a limit in bytes: small packets, as of calls, still fit in."""
SHORTEST_S, LONGEST_S = 0.010, 0.050
"""The bounds of the length of a tail-drop queue: half of the idle round trip."""
BURST_S = 0.002
"""What the bucket of a shaper holds: two wake-ups of a kernel with 1000 timer interrupts a second."""
IFB = "ifb4"
"""Before the name of the interface, as sqm-scripts call them."""
LONGEST_NAME = 15
"""The longest name of an interface (`IFNAMSIZ` less the terminating zero)."""


def best(has: Sequence[str] | frozenset[str]) -> str:
    """The best discipline of a kernel that has these."""
    return next(each for each in (*QDISCS[:-1], SHORT) if each in has or each == SHORT)


@dataclass(frozen=True)
class TailDrop:
    """What the length of a tail-drop queue depends on."""

    rtt_ns: int | None
    """The idle round trip."""
    flows: int
    """The flows that share it."""

    def limit(self, rate_bps: float) -> int:
        """The bytes of a short queue: half of the bandwidth-delay product, 10 to 50 ms, and three packets a flow.

        >>> TailDrop(60_000_000, 1).limit(8e6), TailDrop(100_000, 1).limit(8e6), TailDrop(100_000, 8).limit(8e6)
        (31037, 15897, 37093)
        """
        length_s = min(max((self.rtt_ns or 0) / 2e9, SHORTEST_S), LONGEST_S)
        packets = max(-(-round(rate_bps / 8 * length_s) // FULL), LEAST_PACKETS, self.flows * FOR_EACH_FLOW)
        return packets * FULL + ROOM


def shaper(
    device: str,
    rate: ShaperRate,
    framing: Framing,
    qdisc: str,
    tail: TailDrop,
    *,
    nat: bool = False,
    handle: str = HANDLE,
) -> list[str]:
    """The commands that replace the queueing discipline of a device by a shaper."""
    kbit = rate.usual_kbit if rate.varies else rate.link_kbit
    if qdisc == CAKE:
        words = [framing.cake, *(["nat"] if nat else []), *(["wash", "ingress"] if rate.direction == "down" else [])]
        return [f"tc qdisc replace dev {device} root cake bandwidth {kbit}kbit {' '.join(words)}"]
    overhead = f" overhead {framing.over_ethernet}" if framing.over_ethernet else ""
    line = f"{overhead} linklayer atm" if framing.atm else overhead
    limit = tail.limit(kbit * 1000)
    burst = max(2 * FULL, round(kbit * 125 * BURST_S))
    shape = f"tc qdisc replace dev {device} root handle {handle} tbf rate {kbit}kbit burst {burst} limit {limit}{line}"
    return [shape, f"tc qdisc replace dev {device} parent {handle}1 fq_codel"] if qdisc == FQ_CODEL else [shape]


def ifb(device: str) -> str:
    """The device through which what arrives on an interface is sent a second time."""
    return f"{IFB}{device}"[:LONGEST_NAME]


def redirected(device: str) -> list[str]:
    """The commands that send what arrives on an interface through an intermediate functional block."""
    block = ifb(device)
    match = "u32 match u32 0 0 action mirred egress redirect"
    return [
        f"ip link add name {block} type ifb",
        f"ip link set dev {block} up",
        f"tc qdisc replace dev {device} handle ffff: ingress",
        f"tc filter add dev {device} parent ffff: protocol all prio 10 {match} dev {block}",
    ]


def both(
    device: str,
    rates: Sequence[ShaperRate],
    framing: Framing,
    qdisc: str,
    tail: TailDrop,
    *,
    nat: bool,
    handle: str = HANDLE,
) -> list[str]:
    """The commands that shape these directions of an interface to the Internet."""
    found: list[str] = []
    for rate in rates:
        if rate.direction == "down":
            found += redirected(device)
        target = ifb(device) if rate.direction == "down" else device
        found += shaper(target, rate, framing, qdisc, tail, nat=nat, handle=handle)
    return found


def undone(device: str, directions: Sequence[Direction]) -> list[str]:
    """The commands that remove these shapers; the kernel's default discipline returns."""
    up = [f"tc qdisc del dev {device} root"] if "up" in directions else []
    down = [f"tc qdisc del dev {device} ingress", f"ip link del dev {ifb(device)}"] if "down" in directions else []
    return [*up, *down]
