"""How good the calls of `voip` traffic were: delay, jitter, loss, and what a listener would say.

The receiver's jitter buffer is the best one that keeps its delay fixed for periods of 10 s. In each period it holds all
packets until the same delay, chosen in hindsight so that the rating is highest; packets with a longer delay count as
lost. (Telephones can only adapt to packets that have arrived; Moon, Kurose and Towsley 1998 judge them by such a
buffer.) The 20 ms of speech that a packet holds are added to that delay.
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
"""The speech in a packet, which leaves when the last of it has been spoken."""
PERIOD_NS = 10 * NANOSECONDS


def measure(run: RunRecords) -> Iterator[tuple[str, float]]:
    """`voip.<traffic>.*` of every call that sent packets in the window; each metric is that of the worse direction."""
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
    """The one-way delay of every packet of a stream in ms; +inf for a lost packet."""
    return (stream["owd_up_ns"].cast(pl.Float64).fill_null(float("inf")) / MS).to_numpy()


def opinion(stream: pl.DataFrame) -> float:
    """The mean opinion score of a stream: the mean over its periods of 10 s."""
    periods = stream.with_columns(period=pl.col("sent_ns") // PERIOD_NS).partition_by("period", maintain_order=True)
    return fmean(emodel.mos(best_rating(delays_ms(period))) for period in periods)


def best_rating(delays: Samples) -> float:
    """The highest rating that any fixed playout delay gives, for these delays in ms; 0 if no packet arrived."""
    arrived = np.sort(delays[np.isfinite(delays)])
    if not len(arrived):
        return 0.0
    in_time = np.arange(1, len(arrived) + 1)
    return float(emodel.rating(arrived + PACKET_MS, 100 * (1 - in_time / len(delays))).max())


def jitter_ms(stream: pl.DataFrame) -> float:
    """The mean of a receiver's estimates of the interarrival jitter (RFC 3550, section 6.4.1).

    D is the difference of the delays of two packets that arrive one after the other: J += (|D| - J) / 16.
    The jitter is 0 with fewer than two packets.
    """
    arrived = stream.drop_nulls("owd_up_ns").sort(pl.col("sent_ns") + pl.col("owd_up_ns"))
    jitter, estimates = 0.0, []
    for difference in np.abs(np.diff(delays_ms(arrived))):
        jitter += (float(difference) - jitter) / 16
        estimates.append(jitter)
    return fmean(estimates) if estimates else 0.0
