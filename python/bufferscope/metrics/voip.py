"""How good the calls of `voip` traffic were: delay, jitter, loss, and what a listener would say.

The receiver's jitter buffer is as good as one can be that changes its mind every 10 s: it holds each packet until the
one delay, chosen in hindsight, at which the rating is highest; what comes later counts as lost. (Telephones adapt to
what they have seen; Moon, Kurose and Towsley 1998 judge them by such a buffer.) To that delay come the 20 ms of
speech that a packet holds.
"""

from collections.abc import Iterator
from statistics import fmean

import numpy as np
import polars as pl

from bufferscope.metrics import emodel
from bufferscope.metrics.network import NANOSECONDS, traffic_named
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.statistics import Samples
from bufferscope.metrics.window import Window

MS = 1e6
PACKET_MS = 20.0
"""Speech in a packet: it leaves when its last syllable is spoken."""
PERIOD_NS = 10 * NANOSECONDS


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """`voip.<traffic>.*` of every call that sent a packet in the window; each of the direction in which it is worse."""
    sent = Window.of(run).rows(run.probes, "sent_ns").sort("sent_ns")
    for entry in traffic_named(run.scenario, "voip"):
        streams = [sent.filter(probe=f"{entry['name']}/{number}") for number in (1, 2)]
        streams = [stream for stream in streams if not stream.is_empty()]
        if not streams:
            continue
        name, delays = f"voip.{entry['name']}", [delays_ms(stream) for stream in streams]
        yield f"{name}.mos", min(opinion(stream) for stream in streams)
        arrived = [ways[np.isfinite(ways)] for ways in delays]
        if means := [float(ways.mean()) for ways in arrived if len(ways)]:
            yield f"{name}.delay_ms", max(means)
            yield f"{name}.jitter_ms", max(jitter_ms(stream) for stream in streams)
        yield f"{name}.loss_percent", max(100 * (1 - len(a) / len(d)) for a, d in zip(arrived, delays, strict=True))


def delays_ms(stream: pl.DataFrame) -> Samples:
    """The one-way delay of every packet of a stream in ms; +inf for a lost one."""
    return (stream["owd_up_ns"].cast(pl.Float64).fill_null(float("inf")) / MS).to_numpy()


def opinion(stream: pl.DataFrame) -> float:
    """The mean opinion score of a stream: the mean over its periods of 10 s."""
    periods = stream.with_columns(period=pl.col("sent_ns") // PERIOD_NS).partition_by("period", maintain_order=True)
    return fmean(emodel.mos(best_rating(delays_ms(period))) for period in periods)


def best_rating(delays: Samples) -> float:
    """The highest rating that a fixed playout delay gives packets with these delays in ms; 0 where none arrived."""
    arrived = np.sort(delays[np.isfinite(delays)])
    if not len(arrived):
        return 0.0
    in_time = np.arange(1, len(arrived) + 1)
    return float(emodel.rating(arrived + PACKET_MS, 100 * (1 - in_time / len(delays))).max())


def jitter_ms(stream: pl.DataFrame) -> float:
    """The interarrival jitter as a receiver estimates it (RFC 3550, section 6.4.1): the mean of its estimates.

    With D the difference of two packets' delays, in the order of arrival: J += (|D| - J) / 16.
    It is 0 with fewer than two packets.
    """
    arrived = stream.drop_nulls("owd_up_ns").sort(pl.col("sent_ns") + pl.col("owd_up_ns"))
    jitter, estimates = 0.0, []
    for difference in np.abs(np.diff(delays_ms(arrived))):
        jitter += (float(difference) - jitter) / 16
        estimates.append(jitter)
    return fmean(estimates) if estimates else 0.0
