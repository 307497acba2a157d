"""The loss of UDP flows, as their receivers count it."""

from collections.abc import Iterator

from bufferscope.metrics.network import traffic_named, traffic_of_flow
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, gained


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """`loss.<traffic>_percent` of every udp entry with datagrams that arrived or were found missing in the window.

    Counted as iperf3 does: a datagram is lost if one with a higher number has arrived before it. So datagrams that were
    dropped at the end, with none after them, do not count.
    """
    window = Window.of(run)
    for entry in traffic_named(run.scenario, "udp"):
        own = run.flows.filter(traffic_of_flow() == entry["name"])
        lost = int(gained(own, "lost", "flow", window)["lost"].sum())
        arrived = int(gained(own, "delivered_bytes", "flow", window)["delivered_bytes"].sum()) / entry["payload_bytes"]
        if lost + arrived > 0:
            yield f"loss.{entry['name']}_percent", 100 * lost / (lost + arrived)
