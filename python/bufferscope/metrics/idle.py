"""How long a packet takes over ports on which nothing else is sent: propagation, and its time on each wire."""

from collections.abc import Mapping, Sequence

from bufferscope.metrics.capacity import Capacity
from bufferscope.metrics.window import Window
from bufferscope.model.network import NANOSECONDS, Port


def transit_s(way: Sequence[Port], capacity: Mapping[str, Capacity], ip_bytes: int, window: Window) -> float:
    """Seconds for an IP packet of this size to cross the ports of `way`, each at its mean rate in the window."""
    seconds = 0.0
    for port in way:
        seconds += port.delay_ns / NANOSECONDS
        possible = capacity[port.name].bits(window.start_ns, window.end_ns) if port.name in capacity else 0
        if possible > 0:
            seconds += port.link_layer.frame_bytes(ip_bytes) * 8 * window.seconds / possible
    return seconds
