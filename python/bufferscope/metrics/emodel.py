"""How good a telephone call is: the E-model of ITU-T G.107 (06/2015), all parameters but two at their defaults.

The two are the one-way delay and the packet loss. The codec is G.711 with the loss concealment of its Appendix I.
Symbols are those of the Recommendation. Delay has three effects: it makes the talker's echo (`Idte`) and the listener's
echo (`Idle`) worse, which are as weak as the defaults of TELR and WEPL say, and it makes conversation difficult
(`Idd`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from bufferscope.base.libraries import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


Values: TypeAlias = "npt.NDArray[np.float64]"

# The defaults of table 2.
SLR = 8.0
"""Send loudness rating, dB."""
RLR = 2.0
"""Receive loudness rating, dB."""
STMR = 15.0
"""Sidetone masking rating, dB."""
LSTR = 18.0
"""Listener sidetone rating, dB."""
DS = 3.0
"""D-value of the telephone at the send side."""
TELR = 65.0
"""Talker echo loudness rating, dB."""
WEPL = 110.0
"""Weighted echo path loss, dB."""
QDU = 1.0
"""Quantisation distortion units."""
NC = -70.0
"""Circuit noise at the 0 dBr point, dBm0p."""
NFOR = -64.0
"""Noise floor at the receive side, dBmp."""
PS = 35.0
"""Room noise at the send side, dB(A)."""
PR = 35.0
"""Room noise at the receive side, dB(A)."""

# G.113 (11/2007), Appendix I, table I.4: G.711 with packet loss concealment (G.711, Appendix I).
IE = 0.0
"""Equipment impairment factor."""
BPL = 25.1
"""Packet-loss robustness factor."""
BURST_R = 1.0
"""Burst ratio: losses are random."""


def mos(rating: float) -> float:
    """The mean opinion score of a rating R, from 1 (bad) to 4.5 (G.107, annex B, B-4).

    The Recommendation's cubic falls below 1, down to 0.989, for ratings between 0 and about 6.5. The scale begins at 1,
    so this score is at least 1.
    """
    if rating <= 0:
        return 1.0
    if rating >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)


def rating(delay_ms: Values, loss_percent: Values) -> Values:
    """The rating R of calls with these mouth-to-ear delays and packet losses: at most 93.2; it can be negative."""
    return BASIC - SIMULTANEOUS - _delay_impairment(delay_ms) - _loss_impairment(loss_percent)


def _loss_impairment(loss_percent: Values) -> Values:
    """Ie-eff, the effective equipment impairment."""
    return IE + (95 - IE) * loss_percent / (loss_percent / BURST_R + BPL)


def _delay_impairment(delay_ms: Values) -> Values:
    """Id: the delay from mouth to ear is half the echo's delay (T = Ta = Tr / 2)."""
    return _talker_echo(delay_ms) + _listener_echo(2 * delay_ms) + _long_delay(delay_ms)


def _talker_echo(delay_ms: Values) -> Values:
    """Idte, for a sidetone between 9 and 20 dB: none below 1 ms, where the echo counts as sidetone."""
    terv = TELR - 40 * np.log10((1 + delay_ms / 10) / (1 + delay_ms / 150)) + 6 * np.exp(-0.3 * delay_ms**2)
    roe, re = -1.5 * (NO - RLR), 80 + 2.5 * (terv - 14)
    impairment: Values = ((roe - re) / 2 + np.sqrt((roe - re) ** 2 / 4 + 100) - 1) * (1 - np.exp(-delay_ms))
    return np.where(delay_ms < 1, 0.0, impairment)


def _listener_echo(round_trip_ms: Values) -> Values:
    """Idle."""
    rle = 10.5 * (WEPL + 7) * (round_trip_ms + 1) ** -0.25
    return (BASIC - rle) / 2 + np.sqrt((BASIC - rle) ** 2 / 4 + 169)


def _long_delay(delay_ms: Values) -> Values:
    """Idd: none up to 100 ms."""
    x = np.log2(np.maximum(delay_ms, 100) / 100)
    return 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)


def _noise() -> float:
    """No: the sum of all noise at the 0 dBr point."""
    olr = SLR + RLR
    nos = PS - SLR - DS - 100 + 0.004 * (PS - olr - DS - 14) ** 2
    pre = PR + 10 * math.log10(1 + 10 ** ((10 - LSTR) / 10))
    nor = RLR - 121 + pre + 0.008 * (pre - 35) ** 2
    return 10 * math.log10(math.fsum(math.pow(10, noise / 10) for noise in (NC, nos, nor, NFOR + RLR)))


def _simultaneous() -> float:
    """Is: excessive loudness, sidetone and quantisation; the echo's part in the sidetone, below 0.001, is left out."""
    xolr = SLR + RLR + 0.2 * (64 + NO - RLR)
    iolr: float = 20 * ((1 + (xolr / 8) ** 8) ** (1 / 8) - xolr / 8)
    ist: float = (
        12 * (1 + ((STMR - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + ((STMR + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + ((STMR - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )
    q = 37 - 15 * math.log10(QDU)
    g = 1.07 + 0.258 * q + 0.0602 * q * q
    y, z = (BASIC - 100) / 15 + 46 / 8.4 - g / 9, 46 / 30 - g / 40
    return iolr + ist + 15 * math.log10(1 + math.pow(10, y) + math.pow(10, z))


NO = _noise()
BASIC = 15 - 1.5 * (SLR + NO)
"""Ro: the signal above the noise."""
SIMULTANEOUS = _simultaneous()
