"""What an observed run shows of one flow: the round trips of its path, what is in flight, the receiver's window.

Of a capture, the round trips are those of the table of connections and of the metrics `round_trip.*`; of other
programs' tests they are the smoothed ones of the flow's samples.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from bufferscope.analysis.explanation.senders import Sender
from bufferscope.analysis.explanation.standing import Series
from bufferscope.metrics.paths import BOTH, COLUMNS, FEWEST_ROUND_TRIPS, RECEIVER, SENDER, path_round_trips
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS

GAIN = 1 / 8
"""How much each round trip weighs in the smoothed one (RFC 6298)."""
SEEN_FROM = {
    SENDER: "Its round trips are seen from the receiver: from there to the sender and back.",
    BOTH: "Its round trips are seen from between the ends: to the receiver and back, and to the sender and back.",
}
"""A sentence for captures that were not made at the sender."""


@dataclass(frozen=True)
class ObservedFlow:
    """One flow as it was observed."""

    sender: Sender
    half: str | None
    """The half of the path that the round trips are from; None: what the sender itself reported."""
    least_s: float
    typical_s: float
    """Of a capture the median, else the mean of the smoothed round trips."""
    times_s: Series
    smoothed_s: Series
    """The smoothed round trips at `times_s`."""
    shut_share: float
    """The part of its time in which the receiver's window had no room for another segment."""

    @property
    def added_s(self) -> float:
        """By how much a typical round trip is longer than the minimum."""
        return self.typical_s - self.least_s

    @property
    def are_few(self) -> bool:
        """Whether a capture shows too few round trips to compare them with one another."""
        return self.half is not None and len(self.times_s) < FEWEST_ROUND_TRIPS

    @property
    def sees_flight(self) -> bool:
        """Whether the data in flight was seen where all of it passes: at the sender."""
        return self.half in (None, RECEIVER)

    @property
    def held_bytes(self) -> float:
        """The BDP: the flow's goodput times the minimum RTT."""
        return self.sender.goodput_bps * self.least_s / 8

    @property
    def inflight_bytes(self) -> float:
        """The mean in flight: counted, or by Little's law from the goodput and a typical round trip."""
        return self.sender.inflight_bytes if self.sees_flight else self.sender.goodput_bps * self.typical_s / 8

    @property
    def held_times(self) -> float:
        """The data in flight, in multiples of the BDP."""
        return self.inflight_bytes / self.held_bytes if self.held_bytes else 0.0


def seen(run: RunRecords, sender: Sender) -> ObservedFlow | None:
    """A flow as it was observed; None without round trips."""
    of_flow = pl.col("flow") == sender.flow
    rows = path_round_trips(run.round_trips.select(COLUMNS).lazy().filter(of_flow)).collect()
    shut = _shut_share(run, sender)
    if rows.height:
        rtts = rows["rtt_ns"]
        smoothed = rtts.cast(pl.Float64).ewm_mean(alpha=GAIN, adjust=False)
        least, median = (float(value) / NANOSECONDS for value in np.percentile(rtts.to_numpy(), (0, 50)))
        return ObservedFlow(sender, rows["half"][0], least, median, _seconds(rows["t_ns"]), _seconds(smoothed), shut)
    if not sender.least_rtt_s or not sender.srtt_s:
        return None
    samples = run.flows.filter(of_flow).drop_nulls("srtt_ns").sort("t_ns")
    times, smoothed_s = _seconds(samples["t_ns"]), _seconds(samples["srtt_ns"])
    return ObservedFlow(sender, None, sender.least_rtt_s, sender.srtt_s, times, smoothed_s, shut)


def _seconds(column: pl.Series) -> Series:
    return column.to_numpy() / NANOSECONDS


def _shut_share(run: RunRecords, sender: Sender) -> float:
    """The receiver's share by the sender's account; of a capture, by the time between the samples that show it."""
    mss = int(run.meta["mss_bytes"])
    of_flow = run.flows.filter(pl.col("flow") == sender.flow).sort("t_ns")
    known = of_flow.select(
        shut=pl.col("inflight_bytes") + mss > pl.col("rwnd_bytes"),
        lasts=pl.col("t_ns").shift(-1) - pl.col("t_ns"),
        accounted=pl.col("rwnd_limited_ns").is_not_null() | pl.col("notsent_bytes").is_not_null(),
    )
    if known["accounted"].any():
        return sender.receiver_share
    whole_ns = int(known["lasts"].sum() or 0)
    shut_ns = int(known.filter(pl.col("shut"))["lasts"].sum() or 0)
    return max(sender.receiver_share, shut_ns / whole_ns if whole_ns else 0.0)
