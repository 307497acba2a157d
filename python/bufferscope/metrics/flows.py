"""What TCP senders did: retransmissions, congestion windows, and what waited in the senders themselves."""

from collections.abc import Iterator

import polars as pl

from bufferscope.metrics.network import NANOSECONDS, traffic_named, traffic_of_flow
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
    """By Little's law: the bytes that wait, summed up over time, over the bytes sent."""
    sent_bytes = int(gained(samples, "delivered_bytes", "flow", window)["delivered_bytes"].sum())
    # Engines need not sample all flows at the same time, and flows come and go: each has times of its own.
    since_last_s = pl.col("t_ns").diff().over("flow") / NANOSECONDS
    waited_bytes = (pl.col("notsent_bytes") + pl.col("notsent_bytes").shift().over("flow")) / 2
    waits = window.rows(samples).sort("flow", "t_ns").select(waited_bytes * since_last_s).to_series().drop_nulls()
    return 1000 * float(waits.sum()) / sent_bytes if sent_bytes and len(waits) else None
