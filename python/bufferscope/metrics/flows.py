"""Metrics of TCP senders: retransmissions, congestion windows, and the time that data waited in send buffers."""

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
    flows = run.flows.with_columns(traffic_of_flow())
    yield "retransmits.total", int(gained(flows, "retransmits", "flow", window)["retransmits"].sum())
    samples = window.rows(flows).select("traffic", cwnd_packets(run))
    for entry in entries:
        cwnd = samples.filter(traffic=entry["name"])["cwnd_packets"].to_numpy()
        if len(cwnd):
            yield f"cwnd.{entry['name']}.mean_packets", float(cwnd.mean())
            yield f"cwnd.{entry['name']}.max_packets", float(cwnd.max())
    for entry in traffic_named(run.scenario, "tcp"):
        waited_ms = _unsent_ms(flows.filter(traffic=entry["name"]), window)
        if waited_ms is not None:
            yield f"unsent.{entry['name']}_ms", waited_ms


def _unsent_ms(samples: pl.DataFrame, window: Window) -> float | None:
    """By Little's law: the time integral of the waiting bytes, divided by the bytes sent."""
    sent_bytes = int(gained(samples, "delivered_bytes", "flow", window)["delivered_bytes"].sum())
    # Flows come and go, and engines need not sample all at the same time, so intervals are computed flow by flow.
    goes_on = pl.col("flow") == pl.col("flow").shift()
    since_last_s = pl.col("t_ns").diff() / NANOSECONDS
    waited_bytes = (pl.col("notsent_bytes") + pl.col("notsent_bytes").shift()) / 2
    ordered = window.rows(samples).sort("flow", "t_ns")
    waits = ordered.select(pl.when(goes_on).then(waited_bytes * since_last_s)).to_series().drop_nulls()
    return 1000 * float(waits.sum()) / sent_bytes if sent_bytes and len(waits) else None
