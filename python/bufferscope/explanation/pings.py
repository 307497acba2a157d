"""What the pings of a run waited above the idle path."""

from dataclasses import dataclass

import polars as pl

from bufferscope.engines import ENGINES
from bufferscope.metrics.capacity import capacities
from bufferscope.metrics.idle import transit_s
from bufferscope.metrics.network import Port, path, probers, traffic_ends
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window

HEADER_BYTES = 28
"""IPv4 and ICMP, or IPv4 and UDP."""


@dataclass(frozen=True)
class Pings:
    """The probes of one prober."""

    name: str
    way: tuple[Port, ...]
    """The ports that a probe and its answer cross."""
    own_s: float
    """The round trip on the idle path; where nobody knows that, the least that was seen."""
    rows: pl.DataFrame
    """`sent_ns, rtt_ns, owd_up_ns, owd_down_ns` in the window."""

    @property
    def lost_share(self) -> float:
        """The share without an answer."""
        return self.rows["rtt_ns"].null_count() / self.rows.height

    def added_s(self, quantile: float) -> float:
        """What a quantile of all probes waited above the idle path; infinite if it is among the lost."""
        times = self.rows["rtt_ns"].cast(pl.Float64).fill_null(float("inf"))
        return float(times.quantile(quantile, "higher") or 0) / 1e9 - self.own_s

    def above(self, added_s: float) -> float:
        """The share of the probes that waited longer than this above the idle path, the lost included."""
        limit_ns = (self.own_s + added_s) * 1e9
        return float((self.rows["rtt_ns"].fill_null(2**62).to_numpy() > limit_ns).mean())


def pings(run: RunRecords, window: Window) -> list[Pings]:
    """The probers that sent something in the window, in the file's order."""
    capacity = capacities(run)
    found = []
    for entry in probers(run.scenario):
        near, far = traffic_ends(run.scenario, entry)
        way = (*path(run.scenario, near, far), *path(run.scenario, far, near))
        sent = run.probes.filter(pl.col("probe") == entry["name"])
        rows = window.rows(sent, "sent_ns").select("sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns")
        if rows.height:
            own_s = _least_s(sent)
            if run.meta["engine"] in ENGINES:
                own_s = transit_s(way, capacity, entry["payload_bytes"] + HEADER_BYTES, window)
            found.append(Pings(entry["name"], way, own_s, rows))
    return found


def _least_s(rows: pl.DataFrame) -> float:
    answered = rows["rtt_ns"].drop_nulls()
    return int(answered.to_numpy().min()) / 1e9 if len(answered) else 0.0
