"""What the pings of a run waited above the idle path."""

from dataclasses import dataclass

import polars as pl

from bufferscope.engines import engine_of
from bufferscope.metrics.capacity import capacities
from bufferscope.metrics.idle import transit_s
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window
from bufferscope.model.network import Port, path, probers, traffic_ends

HEADER_BYTES = 28
"""IPv4 and ICMP, or IPv4 and UDP."""


@dataclass(frozen=True)
class Pings:
    """The probes of one prober."""

    name: str
    out: tuple[Port, ...]
    """The ports that a probe crosses."""
    back: tuple[Port, ...]
    """The ports that its answer crosses."""
    own_s: float
    """The idle RTT; if it is not known, the minimum RTT of the whole run."""
    own_out_s: float
    """The part of it in the direction of the probe; 0 if it is not known."""
    rows: pl.DataFrame
    """`sent_ns, rtt_ns, owd_up_ns, owd_down_ns` in the window."""

    @property
    def way(self) -> tuple[Port, ...]:
        """The ports that a probe and its answer cross."""
        return (*self.out, *self.back)

    @property
    def lost_share(self) -> float:
        """The share without an answer."""
        return self.rows["rtt_ns"].null_count() / self.rows.height

    def added_s(self, quantile: float) -> float:
        """What a quantile of all probes waited above the idle path; infinite if it is among the lost."""
        times = self.rows["rtt_ns"].cast(pl.Float64).fill_null(float("inf"))
        return float(times.quantile(quantile, "higher") or 0) / 1e9 - self.own_s

    def added_towards_s(self, port: str, quantile: float) -> float:
        """What a quantile of all probes waited in the direction that crosses a port; in both if only that is known."""
        is_out = port in {each.name for each in self.out}
        column = "owd_up_ns" if is_out else "owd_down_ns"
        if self.rows[column].null_count() == self.rows.height:
            return self.added_s(quantile)
        times = self.rows[column].cast(pl.Float64).fill_null(float("inf"))
        own_s = self.own_out_s if is_out else self.own_s - self.own_out_s
        return float(times.quantile(quantile, "higher") or 0) / 1e9 - own_s

    def towards(self, port: str) -> tuple[Port, ...]:
        """The ports of the direction that crosses a port."""
        return self.out if port in {each.name for each in self.out} else self.back

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
        out, back = tuple(path(run.scenario, near, far)), tuple(path(run.scenario, far, near))
        sent = run.probes.filter(pl.col("probe") == entry["name"])
        rows = window.rows(sent, "sent_ns").select("sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns")
        if rows.height:
            own_s, own_out_s = _least_s(sent), 0.0
            if not engine_of(run.engine).observes:
                ip_bytes = entry["payload_bytes"] + HEADER_BYTES
                own_out_s = transit_s(out, capacity, ip_bytes, window)
                own_s = own_out_s + transit_s(back, capacity, ip_bytes, window)
            found.append(Pings(entry["name"], out, back, own_s, own_out_s, rows))
    return found


def _least_s(rows: pl.DataFrame) -> float:
    answered = rows["rtt_ns"].drop_nulls()
    return int(answered.to_numpy().min()) / 1e9 if len(answered) else 0.0
