"""The rate of a shaper, from the goodput of a live measurement.

A shaper counts whole packets with the headers of the link, and goodput is payload:
`gross = goodput * bytes on the link / payload`. The goodput is the lower decile of the steady part in bins of one
second, and a margin is left below it (`docs/shape-your-line.md`). The last sentence of the verdict names the same rate
(`crates/verdict/src/cure.rs`); a test compares both.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from bufferscope.analysis.fixing.framing import Framing
from bufferscope.analysis.fixing.located import ALONE, NAMES
from bufferscope.metrics.records import RunRecords
from bufferscope.store.live import LiveMeasurement, live_of
from bufferscope.store.verdict import Direction, DirectionNumbers, PhaseVerdict

MARGIN: dict[Direction, float] = {"up": 0.05, "down": 0.10}
"""The share of the rate that is left unused. The queue of a download is before the shaper, so it needs more."""
VARYING = 0.15
"""The coefficient of variation of single seconds above which no fixed rate is right, as in the verdict."""
UNSTEADY = 0.10
"""From here on, a note says that they vary."""
UNCERTAIN = 0.05
"""The additional margin if only a mean is known."""
PACKET = 1500
"""The size of a full IP packet if the measurement does not say."""
TCP_HEADERS = {4: 20 + 20 + 12, 6: 40 + 20 + 12}
"""Headers of IP and TCP, with the option for timestamps, by the version of IP."""
SECOND = 1_000_000_000
RAMP_S = 2.0
"""The longest beginning of a phase that does not count, of at most a fifth of it (`crates/verdict/src/goodput.rs`)."""
RECEIVED = "received."
RECOVERY = 4
"""Round trips under load in which TCP recovers from losses."""
FEWEST = 3
"""Fewer bins have no decile."""
LEAST_KBIT = 8
"""The lowest rate that is printed."""


@dataclass(frozen=True)
class ShaperRate:
    """The rates for a shaper of one direction, in kbit/s."""

    direction: Direction
    """What is shaped."""
    goodput_bps: float
    """What was measured, in bit/s of payload."""
    is_decile: bool
    """Whether that is the lower decile of single seconds; otherwise it is the mean."""
    phase: PhaseVerdict
    """The verdict about the phase whose goodput it is."""
    margin: float
    """The share of the rate that is left unused."""
    link_kbit: int
    """For a shaper that counts the bytes on the link."""
    packet_kbit: int
    """For one that counts IP packets."""
    variation: float | None
    """The coefficient of variation of single seconds."""
    lowest_kbit: int
    """The slowest second on the link, less the margin."""
    usual_kbit: int
    """The measured goodput on the link."""
    highest_kbit: int
    """The fastest second on the link."""

    @property
    def varies(self) -> bool:
        """Whether no fixed rate is right."""
        return self.variation is not None and self.variation > VARYING

    @property
    def why(self) -> str:
        """How the rate was computed, in a sentence."""
        which = "the goodput that nine of ten seconds exceed" if self.is_decile else "the mean goodput"
        return (
            f"{NAMES[self.direction].capitalize()}: {which} is {self.goodput_bps / 1e6:.3g} Mbit/s; with the headers "
            f"and less a margin of {100 * self.margin:.0f} %, that is {self.link_kbit} kbit/s."
        )


def shaper_rate(
    run: RunRecords, direction: Direction, framing: Framing, raised: float = 0.0, margin: float | None = None
) -> ShaperRate | None:
    """The rate of a shaper for a direction; None if its goodput was not measured.

    `margin` is the share of the rate that is left unused, by default that of `MARGIN`, and `raised` by how much it is
    smaller than that.
    """
    live = live_of(run.meta["summary"])
    found = _measured(live, direction) if live else None
    if live is None or found is None:
        return None
    phase, numbers = found
    goodput, variation = numbers["goodput"], _variation(live, direction)
    assert goodput
    decile: float | None = goodput["p10_bps"]
    length_s = bin_s(phase)
    rates = by_bin(run, live, phase, direction, length_s)
    if length_s > 1 and len(rates) >= FEWEST:
        decile = max(float(np.quantile(rates, 0.1)), decile or 0.0)
        variation = min(float(np.std(rates) / np.mean(rates)), 1.0 if variation is None else variation)
    goodput_bps = goodput["mean_bps"] if decile is None else decile
    if goodput_bps <= 0:
        return None
    usual = MARGIN[direction] + (UNCERTAIN if decile is None else 0) if margin is None else margin
    left = max(usual - raised, 0.0)
    packet, payload = packet_and_payload(live)
    on_link, as_packet = framing.bytes_of(packet) / payload, packet / payload
    rates = rates or [float(goodput_bps)]
    return ShaperRate(
        direction,
        goodput_bps,
        decile is not None,
        phase,
        left,
        _kbit(goodput_bps * on_link * (1 - left)),
        _kbit(goodput_bps * as_packet * (1 - left)),
        variation,
        _kbit(min(rates) * on_link * (1 - left)),
        _kbit(goodput_bps * on_link),
        _kbit(max(rates) * on_link),
    )


def packet_and_payload(live: LiveMeasurement) -> tuple[int, int]:
    """The bytes of a full packet of the load, and of the payload in it."""
    found = live["parameters"].get("mtu_bytes")
    packet = found if isinstance(found, int) and 576 <= found <= 9000 else PACKET
    return packet, packet - TCP_HEADERS[6 if live["address"].startswith("[") else 4]


def bin_s(phase: PhaseVerdict) -> float:
    """The length of the bins whose rates are compared: a second, and at least the time in which TCP recovers.

    A receiver passes on nothing beyond a lost segment until this is sent again, so with a long queue its goodput pauses
    and then catches up, at whatever rate the line has. Bins of both lengths are too low then, never too high.
    """
    rtt_ns = phase["numbers"]["loaded"]["p50_ns"] or 0
    return max(1.0, RECOVERY * rtt_ns / SECOND)


def by_bin(
    run: RunRecords, live: LiveMeasurement, phase: PhaseVerdict, direction: Direction, length_s: float = 1.0
) -> list[float]:
    """The goodput of each bin of the steady part of a phase, in bit/s."""
    times = next((each for each in live["phases"] if each["start_ns"] == phase["start_ns"]), None)
    if times is None:
        return []
    load = phase["kind"] if phase["kind"] == ALONE[direction] else f"{phase['kind']}.{direction}"
    whole_s = (times["end_ns"] - times["start_ns"]) / SECOND
    begin = times["start_ns"] + round(min(whole_s / 5, RAMP_S) * SECOND)
    own = run.flows.filter((pl.col("flow") == RECEIVED + load) & pl.col("t_ns").is_between(begin, times["end_ns"]))
    counts = own.select("t_ns", "delivered_bytes").drop_nulls().rows()
    length = round(length_s * SECOND)
    # The last sample of each bin, and the exact time between them.
    edges = list({(t_ns - begin) // length: (t_ns, count) for t_ns, count in counts}.values())
    return [
        8e9 * (later[1] - before[1]) / (later[0] - before[0])
        for before, later in pairwise([*counts[:1], *edges])
        if later[0] - before[0] > length / 2
    ]


def _measured(live: LiveMeasurement, direction: Direction) -> tuple[PhaseVerdict, DirectionNumbers] | None:
    """The phase that loads a direction alone, or else any that loads it, with its goodput."""
    loaded = [
        (phase, each)
        for phase in live["verdict"]["phases"]
        for each in phase["numbers"]["directions"]
        if each["direction"] == direction and each["loaded"] and each["goodput"]
    ]
    alone = [each for each in loaded if each[0]["kind"] == ALONE[direction]]
    return next(iter([*alone, *loaded]), None)


def _variation(live: LiveMeasurement, direction: Direction) -> float | None:
    """The least variation of any phase, as the last sentence of the verdict takes it."""
    every = [
        each["goodput"]["variation"]
        for phase in live["verdict"]["phases"]
        for each in phase["numbers"]["directions"]
        if each["direction"] == direction and each["goodput"]
    ]
    return min((each for each in every if each is not None), default=None)


def _kbit(bits_per_second: float) -> int:
    return max(LEAST_KBIT, int(bits_per_second / 1000))
