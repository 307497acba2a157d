"""What TCP senders did: retransmissions, congestion windows, and what waited in the senders themselves."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.network import traffic_named, traffic_of_flow
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, gained


def cwnd_packets(run: RunRecords) -> pl.Expr:
    """The congestion window in packets of the run's maximum segment size."""
    return (pl.col("cwnd_bytes") / int(run.meta["mss_bytes"])).alias("cwnd_packets")


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """`retransmits.total`, `cwnd.<traffic>.*` and `unsent.<traffic>_ms` of a run with TCP."""
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
    for entry in traffic_named(run.scenario, "tcp"):
        own = run.flows.with_columns(traffic_of_flow()).filter(traffic=entry["name"])
        waited_ms = _unsent_ms(own, window)
        if waited_ms is not None:
            yield f"unsent.{entry['name']}_ms", waited_ms


def _unsent_ms(samples: pl.DataFrame, window: Window) -> float | None:
    """By Little's law: what waits on average, over what is sent in a second."""
    inside = window.rows(samples)
    bytes_per_s = int(gained(samples, "delivered_bytes", "flow", window)["delivered_bytes"].sum()) / window.seconds
    if bytes_per_s == 0 or inside["notsent_bytes"].null_count() == len(inside):
        return None
    return 1000 * float(inside["notsent_bytes"].sum()) / inside["t_ns"].n_unique() / bytes_per_s
