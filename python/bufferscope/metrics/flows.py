"""What TCP senders did: retransmissions and congestion windows."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.network import traffic_named, traffic_of_flow
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, gained


def cwnd_packets(run: RunRecords) -> pl.Expr:
    """The congestion window in packets of the run's maximum segment size."""
    return (pl.col("cwnd_bytes") / int(run.meta["mss_bytes"])).alias("cwnd_packets")


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """`retransmits.total` and `cwnd.<traffic>.*` of a run with TCP."""
    entries = traffic_named(run.scenario, "tcp", "web", "bittorrent")
    if not entries:
        return
    window = Window.of(run)
    yield "retransmits.total", int(gained(run.flows, "retransmits", "flow", window)["retransmits"].sum())
    samples = window.rows(run.flows).select(traffic_of_flow(), cwnd_packets(run))
    for entry in entries:
        cwnd = samples.filter(traffic=entry["name"])["cwnd_packets"].to_numpy()
        if len(cwnd):
            yield f"cwnd.{entry['name']}.mean_packets", float(cwnd.mean())
            yield f"cwnd.{entry['name']}.max_packets", float(cwnd.max())
