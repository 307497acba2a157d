"""What flows over UDP lost, as their receivers count it."""

from collections.abc import Iterator

from bufferscope.metrics.network import traffic_named, traffic_of_flow
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, gained


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """`loss.<traffic>_percent` of every udp entry of which something arrived, or was missed, in the window.

    As iperf3 counts: a datagram is lost when one with a higher number has arrived before it, so what was dropped last,
    with nothing behind it, does not count.
    """
    window = Window.of(run)
    for entry in traffic_named(run.scenario, "udp"):
        own = run.flows.with_columns(traffic_of_flow()).filter(traffic=entry["name"])
        lost = int(gained(own, "lost", "flow", window)["lost"].sum())
        arrived = int(gained(own, "delivered_bytes", "flow", window)["delivered_bytes"].sum()) / entry["payload_bytes"]
        if lost + arrived > 0:
            yield f"loss.{entry['name']}_percent", 100 * lost / (lost + arrived)
