"""Numbers for readers: rounded, with their unit, and with words for values that are infinite or unknown."""

import math
from collections.abc import Mapping

NBSP = "\N{NO-BREAK SPACE}"
THIN = "\N{NARROW NO-BREAK SPACE}"

_SCALES: Mapping[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")),
    "bps": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
}
_PLAIN = ("bytes", "packets")
SHOWN_DIGITS = 4
"""The significant digits of a number."""
NOISE = 1e-12
"""A share below which differences come from the arithmetic of floating-point numbers."""
COUNTED = ("bytes", "changes", "packets", "probes", "segments", "stalls", "transfers")
"""Units that are words and have a singular."""


def number(value: float) -> str:
    """At most four significant digits, with thousands separated: `1 234`, `12.35`; all digits of whole numbers."""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value + 0.0:,.0f}".replace(",", THIN)  # -0.0 becomes 0
    return f"{value:.4g}"


def margin(reach: float, mean: float = math.nan) -> str:
    """What follows `±`: two significant digits, as more would only show how the repetitions scatter.

    Digits beyond the last one that `number` shows of the mean are left out.

    >>> margin(0.0163, 1.779), margin(0.00055, 1.822), margin(1.1e-14, 9.556)
    ('0.016', '<0.001', '0')
    """
    if not math.isfinite(mean) or mean == 0 or not math.isfinite(reach):
        return number(float(f"{reach:.2g}"))
    if reach <= NOISE * abs(mean):
        return "0"
    digit = min(1.0, 10.0 ** (math.floor(math.log10(abs(mean))) - SHOWN_DIGITS + 1))
    if reach < digit:
        return f"<{number(digit)}"
    return number(float(f"{round(float(f'{reach:.2g}') / digit) * digit:.2g}"))


def with_unit(value: float, unit: str) -> str:
    """`12.35 ms`, `1 packet`; the unit may be empty."""
    singular = unit[:-1] if value == 1 and unit in COUNTED else unit
    return f"{number(value)}{NBSP}{singular}" if unit else number(value)


def quantity(value: float, unit: str) -> str:
    """A number in a key's unit (`ns`, `bps`, `bytes`, `packets`), in words and scaled: `5 ms` for 5,000,000 ns."""
    if unit in _PLAIN:
        return with_unit(value, unit)
    for scale, name in _SCALES[unit]:
        if abs(value) >= scale:
            return with_unit(value / scale, name)
    return with_unit(value, _SCALES[unit][0][1])


def setting(key: str, value: object) -> str:
    """A scenario's setting in words, with the unit from the end of its key: `limit 100 packets` for `limit_packets`."""
    name, _, unit = key.rpartition("_")
    words = name.replace("_", " ")
    if isinstance(value, bool) or value is None:
        return f"{key.replace('_', ' ')} {'on' if value else 'off'}" if value is not None else f"{words or key} none"
    if isinstance(value, int | float) and name and (unit in _SCALES or unit in _PLAIN):
        return f"{words} {quantity(value, unit)}"
    shown = number(value) if isinstance(value, int | float) else str(value)
    return f"{key.replace('_', ' ')} {shown}"


def band(low: float, high: float, unit: str) -> str:
    """`245 to 320 ms`, `at least 3`, `at most 5 s`."""
    if math.isinf(low) and math.isinf(high):
        return "any"
    if math.isinf(high):
        return f"at least{NBSP}{with_unit(low, unit)}"
    if math.isinf(low):
        return f"at most{NBSP}{with_unit(high, unit)}"
    return f"{number(low)}{NBSP}to{NBSP}{with_unit(high, unit)}"


def plural(count: int, word: str) -> str:
    """`1 run`, `4 runs`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"
