"""Numbers in the sentences of an explanation: two or three digits, which a reader can remember, with their unit."""

from bufferscope.base.fmt import quantity, with_unit
from bufferscope.metrics.window import Window
from bufferscope.model.network import NANOSECONDS

ALL = "all"
"""A share that rounds to 100 %."""


def time(seconds: float) -> str:
    """`170 ms`, `1.2 s`."""
    return quantity(_round(seconds * 1e9, 2), "ns") if seconds else "0 ms"


def instant(seconds: float) -> str:
    """A time since the start: `12.3 s`."""
    return with_unit(round(seconds, 1), "s")


def length(seconds: float) -> str:
    """How long something lasts: `30 s`, `0.42 s`."""
    return with_unit(round(seconds, 1) if seconds >= 1 else _round(seconds, 2), "s")


def span(window: Window) -> str:
    """`10 s to 40 s`."""
    return f"{instant(window.start_ns / NANOSECONDS)} to {instant(window.end_ns / NANOSECONDS)}"


def rate(bps: float) -> str:
    """`9.6 Mbit/s`."""
    return quantity(_round(bps, 3), "bps")


def size(count: float) -> str:
    """`54 kB`; thousands, as rates have them."""
    for scale, unit in ((1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return with_unit(_round(count / scale, 2), unit)
    return with_unit(round(count), "bytes")


def share(part: float) -> str:
    """`96 %`, `all`."""
    return ALL if part >= 0.995 else percent(part)


def percent(part: float) -> str:
    """`96 %`."""
    return with_unit(_round(100 * part, 2), "%")


def times(factor: float) -> str:
    """`4.1 times`."""
    return f"{_round(factor, 2):g} times"


def _round(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
