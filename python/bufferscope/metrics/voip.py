"""How good the calls of `voip` traffic were: delay, jitter, loss, and what a listener would say.

The receiver's jitter buffer is the best one that keeps its delay fixed for periods of 10 s. In each period it holds all
packets until the same delay, chosen in hindsight so that the rating is highest; packets with a longer delay count as
lost. (Telephones can only adapt to packets that have arrived; Moon, Kurose and Towsley 1998 judge them by such a
buffer.) The 20 ms of speech that a packet holds are added to that delay.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.metrics import emodel
from bufferscope.metrics.batch import Batch, run_type
from bufferscope.metrics.declaring import Metric, query
from bufferscope.model.network import NANOSECONDS
from bufferscope.stats.estimate import Samples

if TYPE_CHECKING:
    import numpy.typing as npt


MS = 1e6
PACKET_MS = 20.0
"""The speech in a packet, which leaves when the last of it has been spoken."""
PERIOD_NS = 10 * NANOSECONDS


NUMBERS = ("mos", "delay_ms", "jitter_ms", "loss_percent")
SOURCE = "probes: owd_up_ns"


@query(
    Metric(
        "voip.<traffic>.mos",
        "",
        "Mean opinion score by the E-model (ITU-T G.107), for G.711 with loss concealment and the best jitter buffer: "
        "at most 4.41; the worse of both directions.",
        SOURCE,
        lambda: pl.col("mos"),
        heading="<traffic> MOS",
    ),
    Metric(
        "voip.<traffic>.delay_ms",
        "ms",
        "Mean one-way delay of the packets that arrived; the longer of both directions.",
        SOURCE,
        lambda: pl.col("delay_ms"),
        heading="<traffic> delay (ms)",
    ),
    Metric(
        "voip.<traffic>.jitter_ms",
        "ms",
        "Mean interarrival jitter (RFC 3550, section 6.4.1); the larger of both directions.",
        "probes: sent_ns, owd_up_ns",
        lambda: pl.when(pl.col("delay_ms").is_not_null()).then(pl.col("jitter_ms")),
    ),
    Metric(
        "voip.<traffic>.loss_percent",
        "%",
        "Packets sent that never arrived; the larger of both directions.",
        SOURCE,
        lambda: pl.col("loss_percent"),
        heading="<traffic> loss (%)",
    ),
    reads={"probes": ("probe", "sent_ns", "owd_up_ns")},
)
def of_calls(batch: Batch) -> pl.LazyFrame:
    """Every call that sent packets in the window; each number is that of the worse direction."""
    calls = batch.traffic("voip")
    streams = pl.concat(
        [calls.with_columns(pl.format("{}/{}", "traffic", pl.lit(way)).alias("probe")) for way in (1, 2)]
    )
    sent = batch.rows("probes", "probe", "owd_up_ns", time="sent_ns").join(streams, on=["run", "probe"])
    ordered = sent.sort("sent_ns", maintain_order=True)
    ways = ordered.group_by("run", "traffic", "probe").map_groups(_of_stream, _columns())
    found = ways.group_by("run", "traffic").agg(
        pl.col("mos").min(), pl.col("delay_ms").max(), pl.col("jitter_ms").max(), pl.col("loss_percent").max()
    )
    return calls.join(found, on=["run", "traffic"], maintain_order="left")


def _columns() -> dict[str, type[pl.DataType]]:
    """The columns of a stream's numbers, with their types."""
    return {"run": run_type(), "traffic": pl.String, **dict.fromkeys(NUMBERS, pl.Float64)}


def _of_stream(stream: pl.DataFrame) -> pl.DataFrame:
    """The metrics of the packets that one end of a call sent; the delay is null if none arrived."""
    delays = delays_ms(stream)
    arrived = delays[np.isfinite(delays)]
    found = {
        "run": stream["run"][0],
        "traffic": stream["traffic"][0],
        "mos": opinion(stream),
        "delay_ms": float(arrived.mean()) if len(arrived) else None,
        "jitter_ms": jitter_ms(stream),
        "loss_percent": 100 * (1 - len(arrived) / len(delays)),
    }
    return pl.DataFrame([found], schema=_columns())


def delays_ms(stream: pl.DataFrame) -> Samples:
    """The one-way delay of every packet of a stream in ms; +inf for a lost packet."""
    return (stream["owd_up_ns"].cast(pl.Float64).fill_null(float("inf")) / MS).to_numpy()


def opinion(stream: pl.DataFrame) -> float:
    """The mean opinion score of a stream: the mean over its periods of 10 s."""
    return fmean(map(emodel.mos, best_ratings(delays_ms(stream), stream["sent_ns"].to_numpy() // PERIOD_NS)))


def best_ratings(delays: Samples, periods: npt.NDArray[np.int64]) -> list[float]:
    """The highest rating that any fixed playout delay gives in each period, in their order; 0 if no packet arrived.

    Parameters
    ----------
    delays
        The one-way delay of each packet in ms; +inf for a lost packet.
    periods
        The period of each packet.
    """
    order = np.lexsort((delays, periods))
    delays, (_, first, sent) = delays[order], np.unique(periods[order], return_index=True, return_counts=True)
    # The packets of a period that a playout delay lets in: those up to the one that it is set for.
    in_time = np.arange(1, len(delays) + 1) - np.repeat(first, sent)
    arrived = np.isfinite(delays)
    ratings = np.full(len(delays), -np.inf)
    losses = 100 * (1 - in_time[arrived] / np.repeat(sent, sent)[arrived])
    ratings[arrived] = emodel.rating(delays[arrived] + PACKET_MS, losses)
    best = np.maximum.reduceat(ratings, first)
    return [float(rating) for rating in np.where(np.isfinite(best), best, 0.0)]


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
