"""Standing queues: how long packets wait in each layer of each port, and since when.

A layer's delay at a sample is the time that it takes to pass on its content. Where it may pass on less than its wire
could, as a shaper may, that rate is measured while it has a backlog: in the intervals in which it passes on less than
what waited at their beginning. A backlog at both ends would not do, because an application may write in step with the
samples. Where the backlog is never that long, and for cake, the rate is the one that the discipline is set to.

There is a *standing queue* while this delay stays above 5 ms for 100 ms or longer: CoDel's target and interval (RFC
8289, sections 4.3 and 4.4). As in CoDel, the target is at least the time that a full packet takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from bufferscope.analysis.explanation.port_facts import may_be_slower, shaped_bps
from bufferscope.metrics.capacity import steps
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window
from bufferscope.model.network import NANOSECONDS, ports

TARGET_S = 0.005
INTERVAL_S = 0.1
FRAME_BYTES = 1514
"""A full packet on Ethernet."""
FRAME_BITS = FRAME_BYTES * 8
LEAST_BACKLOGGED_S = 0.2
"""The shortest time with a backlog in which a layer's own rate is measured."""
SLOWER = 0.95
"""A layer that has a backlog and passes on less than this share of the wire's rate is itself the limit."""
FULL = 0.9
"""The share of its capacity that a port sends if its wire is full."""
PORT_LAYER = ["port", "layer"]

Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """One layer of a port over a window."""

    port: str
    layer: str
    delay_s: float
    """The median over time."""
    mean_s: float
    low_s: float
    """The 10th percentile, exceeded 90 % of the time."""
    high_s: float
    """The 95th percentile."""
    mean_bytes: float
    most_packets: int
    service_share: float
    """The rate at which it passes packets on while it has a backlog, as a share of the wire's."""


@dataclass(frozen=True)
class StandingQueue:
    """The queue in a port, all layers together."""

    port: str
    layers: tuple[Layer, ...]
    rate_bps: float
    """The wire's mean rate."""
    utilization: float
    """What is sent, as a share of the wire's rate."""
    delay_s: float
    """The median over time."""
    longest_s: tuple[float, float] | None
    """The longest period with a standing queue, in seconds since the run's start; None if it never occurs."""
    standing_share: float
    """The share of the window with a standing queue."""

    @property
    def deepest(self) -> Layer:
        """The layer with the longest delay."""
        return max(self.layers, key=lambda layer: layer.mean_s)

    @property
    def mean_s(self) -> float:
        """The mean delay over time."""
        return sum(layer.mean_s for layer in self.layers)

    @property
    def high_s(self) -> float:
        """The 95th percentile of the layer with the longest delay."""
        return self.deepest.high_s

    @property
    def service_bps(self) -> float:
        """The rate at which the port serves a backlog."""
        return self.rate_bps * min(layer.service_share for layer in self.layers)

    @property
    def is_full(self) -> bool:
        """Whether what passes the port is all that can pass it."""
        return self.used >= FULL

    @property
    def used(self) -> float:
        """What is sent, as a share of what the port can pass on: its wire, or a shaper in front of it."""
        return self.utilization / min(layer.service_share for layer in self.layers)


def standing(run: RunRecords, window: Window) -> dict[str, StandingQueue]:
    """The queues of all ports with a recorded rate, by port; empty without the tables `queues` and `capacity`."""
    rates = steps(run.capacity.lazy(), "port").collect().with_columns(step=pl.col("t_ns")).sort("t_ns")
    samples = run.queues.select("t_ns", *PORT_LAYER, "packets", "bytes", "sent_bytes").sort("t_ns")
    joined = samples.join_asof(rates, on="t_ns", by="port", check_sortedness=False).filter(pl.col("rate_bps") > 0)
    known = ports(run.scenario)
    found: dict[str, list[pl.DataFrame]] = {}
    for (port, _), rows in joined.group_by(PORT_LAYER, maintain_order=True):
        if rows.height > 1:
            found.setdefault(str(port), []).append(rows)
    made = {
        port: _port(port, layers, window, _Rate(may_be_slower(run.scenario, port), shaped_bps(known[port].queue)))
        for port, layers in found.items()
        if port in known
    }
    return {port: each for port, each in made.items() if each}


@dataclass(frozen=True)
class _Rate:
    """How the rate of a port's layers is found."""

    is_measured: bool
    """Whether they may pass on less than the wire takes."""
    set_bps: float | None
    """What the discipline is set to; None if it does not limit the rate."""

    def share(self, rows: pl.DataFrame) -> float:
        """What a layer passes on while it has a backlog, as a share of the wire's rate."""
        if rows.is_empty():
            return 1.0
        found = _service_share(rows) if self.is_measured else 1.0
        if found < 1 or self.set_bps is None or rows["layer"][0] == "ring":
            return found
        share = self.set_bps / float(rows["rate_bps"].to_numpy().mean())
        return share if share < SLOWER else 1.0


def _port(port: str, layers: list[pl.DataFrame], window: Window, rate: _Rate) -> StandingQueue | None:
    measured = [(rows, rate.share(window.rows(rows))) for rows in layers]
    inside = [window.rows(rows) for rows, _ in measured]
    if any(rows.height < 2 for rows in inside):
        return None
    made = tuple(_layer(rows, share) for rows, (_, share) in zip(inside, measured, strict=True))
    rate_bps = float(inside[0]["rate_bps"].to_numpy().mean())
    total = _total(measured)
    within = total.filter(pl.col("t_ns").is_between(window.start_ns, window.end_ns))
    least = min(share for _, share in measured)
    packet_s = FRAME_BITS / (rate_bps * least)
    longest_s = max(spans(*_series(total), packet_s), key=_lasts, default=None)
    _, share = episodes(*_series(within), packet_s)
    median = float(np.median(within["delay_s"].to_numpy()))
    lowest = next((rows for rows in inside if rows["layer"][0] == "ring"), inside[0])
    utilization = _utilization(lowest)
    return StandingQueue(port, made, rate_bps, utilization, median, longest_s, share)


def _layer(rows: pl.DataFrame, share: float) -> Layer:
    delays = _delays_s(rows, share).to_numpy()
    low, median, high = np.percentile(delays, [10, 50, 95])
    return Layer(
        rows["port"][0],
        rows["layer"][0],
        float(median),
        float(delays.mean()),
        float(low),
        float(high),
        float(rows["bytes"].to_numpy().mean()),
        int(rows["packets"].to_numpy().max()),
        share,
    )


def _delays_s(rows: pl.DataFrame, share: float) -> pl.Series:
    return rows["bytes"] * 8 / (rows["rate_bps"] * share)


def _service_share(rows: pl.DataFrame) -> float:
    """What the layer passes on while it has a backlog, as a share of the wire's rate; 1 if as fast as the wire."""
    intervals = rows.select(
        bits=pl.col("sent_bytes").diff() * 8,
        seconds=pl.col("t_ns").diff() / NANOSECONDS,
        rate_bps=pl.col("rate_bps").shift(),
        waited=pl.col("bytes").shift(),
    ).filter(pl.col("waited") * 8 > pl.col("bits"))
    seconds = float(intervals["seconds"].sum())
    possible = float((intervals["seconds"] * intervals["rate_bps"]).sum())
    if seconds < LEAST_BACKLOGGED_S or possible <= 0:
        return 1.0
    share = float(intervals["bits"].sum()) / possible
    return share if 0 < share < SLOWER else 1.0


def _utilization(rows: pl.DataFrame) -> float:
    intervals = rows.select(
        bits=pl.col("sent_bytes").diff() * 8,
        possible=pl.col("t_ns").diff() / NANOSECONDS * pl.col("rate_bps").shift(),
    )
    possible = float(intervals["possible"].sum())
    return float(intervals["bits"].sum()) / possible if possible > 0 else 0.0


def _total(measured: list[tuple[pl.DataFrame, float]]) -> pl.DataFrame:
    """`t_ns, delay_s` of all layers together."""
    each = [rows.select("t_ns").with_columns(delay_s=_delays_s(rows, share)) for rows, share in measured]
    return pl.concat(each).group_by("t_ns").agg(pl.col("delay_s").sum()).sort("t_ns")


def _series(total: pl.DataFrame) -> tuple[Series, Series]:
    return total["t_ns"].to_numpy() / NANOSECONDS, total["delay_s"].to_numpy()


def episodes(times_s: Series, delays_s: Series, packet_s: float = 0.0) -> tuple[float | None, float]:
    """When the longest period with a standing queue began, and the share of all the time in such periods."""
    found = spans(times_s, delays_s, packet_s)
    whole = float(times_s[-1] - times_s[0])
    if not found or whole <= 0:
        return None, 0.0
    return max(found, key=_lasts)[0], sum(map(_lasts, found)) / whole


def spans(times_s: Series, delays_s: Series, packet_s: float = 0.0) -> list[tuple[float, float]]:
    """Beginning and end of each period with a standing queue; `packet_s` is the time of a full packet."""
    above = delays_s > max(TARGET_S, packet_s)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], above.astype(np.int8), [0]))))
    starts, ends = edges[::2], np.minimum(edges[1::2], len(times_s) - 1)
    found = zip(times_s[starts].tolist(), times_s[ends].tolist(), strict=True)
    return [span for span in found if _lasts(span) >= INTERVAL_S]


def _lasts(span: tuple[float, float]) -> float:
    return span[1] - span[0]


def by_delay(found: Mapping[str, StandingQueue]) -> list[StandingQueue]:
    """The ports, the one with the largest share of the delay first."""
    return sorted(found.values(), key=lambda each: each.mean_s, reverse=True)
