"""What each flow's sender did, and what held it back.

The question is that of T-RAT (Zhang, Breslau, Paxson, Shenker, *On the characteristics and origins of Internet flow
rates*, SIGCOMM 2002). Linux' own account answers most of it: the time for which a connection had data to send
(`busy_ns`), and in which the receiver's window or the send buffer stopped it (`tcp_info`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from bufferscope.engines import engine_of
from bufferscope.metrics.capacity import Capacity, capacities
from bufferscope.metrics.idle import transit_s
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window
from bufferscope.model.network import NANOSECONDS, OVER_TCP, Port, path, traffic_ends, traffic_named, traffic_of_flow
from bufferscope.model.scenario import Traffic

DATA_BYTES, ACK_BYTES = 1500, 52
"""IP packets: full, and an acknowledgement with timestamps."""
BULK = ("tcp", "udp", "bittorrent")
"""The kinds of traffic whose flows last; pages come and go."""
COUNTERS = ("delivered_bytes", "retransmits", "busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns")


@dataclass(frozen=True)
class Way:
    """The path of a traffic entry."""

    entry: Traffic
    out: tuple[Port, ...]
    """The ports that its data crosses."""
    back: tuple[Port, ...]
    round_trip_s: float
    """The round trip of a full packet and its acknowledgement on the idle path."""
    rate_bps: float
    """The lowest mean rate on the way of the data; 0 if no port of it has a rate."""

    @property
    def held_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps * self.round_trip_s / 8


@dataclass(frozen=True)
class Sender:
    """One flow in a window. Shares are of the time in which the flow existed."""

    flow: str
    way: Way
    seconds: float
    goodput_bps: float
    inflight_bytes: float
    """Mean payload in flight."""
    most_inflight_bytes: int
    cwnd_bytes: float | None
    """Mean congestion window; None over UDP."""
    most_cwnd_bytes: int | None
    least_cwnd_bytes: int | None
    rwnd_bytes: int | None
    """The largest window that the receiver advertised."""
    srtt_s: float | None
    """Mean smoothed round-trip time."""
    least_rtt_s: float | None
    """The minimum round-trip time that its sender has seen."""
    idle_share: float
    """Nothing to send, and nothing under way."""
    buffer_share: float
    receiver_share: float
    """The time for which Linux' account, or the samples, have this limit: the window is full while data waits."""
    application_share: float
    """Samples in which nothing waited to be sent although the windows had room for another segment."""
    retransmits: int
    is_scripted: bool
    """Whether the scenario says what its application does: not that of a run which was only observed."""
    is_starting: bool
    """Whether it is still in its first slow start at the end."""

    @property
    def is_tcp(self) -> bool:
        """Whether it has a window."""
        return self.cwnd_bytes is not None

    @property
    def always_writes(self) -> bool:
        """Whether the scenario says that its application has more to send at any time."""
        entry = self.way.entry
        is_endless = entry["kind"] == "tcp" and "rate_bps" not in entry and "on_off" not in entry
        return self.is_scripted and is_endless and entry.get("bytes") is None

    @property
    def excess_bytes(self) -> float:
        """Payload in flight beyond goodput x idle RTT, which is therefore queued (Little's law)."""
        return max(0.0, self.inflight_bytes - self.goodput_bps * self.way.round_trip_s / 8)


def ways(run: RunRecords, window: Window) -> dict[str, Way]:
    """The paths of all traffic, by the name of its entry."""
    capacity = capacities(run)
    return {entry["name"]: _way(run, entry, capacity, window) for entry in traffic_named(run.scenario)}


def _way(run: RunRecords, entry: Traffic, capacity: Mapping[str, Capacity], window: Window) -> Way:
    near, far = traffic_ends(run.scenario, entry)
    out, back = path(run.scenario, near, far), path(run.scenario, far, near)
    seconds = transit_s(out, capacity, DATA_BYTES, window) + transit_s(back, capacity, ACK_BYTES, window)
    bits = [capacity[port.name].bits(window.start_ns, window.end_ns) for port in out if port.name in capacity]
    return Way(entry, tuple(out), tuple(back), seconds, min(bits, default=0.0) / window.seconds)


def load_window(run: RunRecords) -> Window:
    """The part of the run's window in which flows exist that last; the whole if there are none."""
    whole = Window.of(run)
    names = [entry["name"] for entry in traffic_named(run.scenario, *BULK)]
    rows = whole.rows(run.flows.select("t_ns", traffic_of_flow())).filter(pl.col("traffic").is_in(names))
    if rows.is_empty():
        return whole
    start, end = rows["t_ns"].min(), rows["t_ns"].max()
    assert isinstance(start, int)
    assert isinstance(end, int)
    return Window(start, end) if end > start else whole


def senders(run: RunRecords, window: Window, known: dict[str, Way]) -> list[Sender]:
    """The flows that last, those with the most data first."""
    names = [name for name, way in known.items() if way.entry["kind"] in BULK]
    rows = window.rows(run.flows).with_columns(traffic_of_flow()).filter(pl.col("traffic").is_in(names))
    if rows.is_empty():
        return []
    first, last = pl.col("t_ns").arg_min(), pl.col("t_ns").arg_max()
    mss, waits = int(run.meta["mss_bytes"]), pl.col("notsent_bytes") > 0
    has_room = pl.col("inflight_bytes") + mss <= pl.min_horizontal("cwnd_bytes", "rwnd_bytes")
    is_shut = pl.col("inflight_bytes") + mss > pl.col("rwnd_bytes")
    facts = (
        rows.sort("t_ns", maintain_order=True)
        .group_by("flow", "traffic", maintain_order=True)
        .agg(
            *((pl.col(name).get(last) - pl.col(name).get(first)).alias(name) for name in COUNTERS),
            seconds=(pl.col("t_ns").max() - pl.col("t_ns").min()) / NANOSECONDS,
            inflight=pl.col("inflight_bytes").mean(),
            most_inflight=pl.col("inflight_bytes").max(),
            cwnd=pl.col("cwnd_bytes").mean(),
            most_cwnd=pl.col("cwnd_bytes").max(),
            least_cwnd=pl.col("cwnd_bytes").min(),
            rwnd=pl.col("rwnd_bytes").max(),
            least_rtt=pl.col("min_rtt_ns").min() / NANOSECONDS,
            srtt=pl.col("srtt_ns").mean() / NANOSECONDS,
            application=(~waits & has_room).mean(),
            shut=(waits & is_shut).mean(),
            starting=pl.col("ssthresh_bytes").get(last).is_null() & (pl.col("retransmits").get(last) == 0),
        )
        .filter(pl.col("seconds") > 0)
        .sort("delivered_bytes", descending=True, maintain_order=True)
    )
    is_scripted = not engine_of(run.engine).observes
    return [_sender(row, known[row["traffic"]], is_scripted) for row in facts.iter_rows(named=True)]


def _sender(row: dict[str, object], way: Way, is_scripted: bool) -> Sender:
    seconds = _number(row["seconds"])
    lasted_ns = seconds * NANOSECONDS
    is_tcp = row["cwnd"] is not None and way.entry["kind"] in OVER_TCP
    return Sender(
        flow=str(row["flow"]),
        way=way,
        seconds=seconds,
        goodput_bps=_number(row["delivered_bytes"]) * 8 / seconds,
        inflight_bytes=_number(row["inflight"]),
        most_inflight_bytes=int(_number(row["most_inflight"])),
        cwnd_bytes=_number(row["cwnd"]) if is_tcp else None,
        most_cwnd_bytes=int(_number(row["most_cwnd"])) if is_tcp else None,
        least_cwnd_bytes=int(_number(row["least_cwnd"])) if is_tcp else None,
        rwnd_bytes=None if row["rwnd"] is None else int(_number(row["rwnd"])),
        srtt_s=None if row["srtt"] is None else _number(row["srtt"]),
        least_rtt_s=None if row["least_rtt"] is None else _number(row["least_rtt"]),
        idle_share=1 - min(1.0, _number(row["busy_ns"]) / lasted_ns) if is_tcp else 0.0,
        receiver_share=max(_number(row["rwnd_limited_ns"]) / lasted_ns, _number(row["shut"])),
        buffer_share=_number(row["sndbuf_limited_ns"]) / lasted_ns,
        application_share=_number(row["application"]),
        retransmits=int(_number(row["retransmits"])),
        is_scripted=is_scripted,
        is_starting=bool(row["starting"]) and is_tcp,
    )


def _number(value: object) -> float:
    """A number; 0 for what the engine does not know."""
    return float(value) if isinstance(value, int | float) else 0.0
