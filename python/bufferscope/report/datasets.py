"""The data of a page's charts: rounded to what a screen can show, by column, and written once however many use them.

`page.js` makes rows of it again, when a chart is drawn.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from bufferscope.base import strict_json

DIGITS = 4
"""Significant digits of a number ..."""
STEPS = 10_000
"""... and more where a column's smallest and largest value are close: what is rounded off is at most a two-thousandth
of what is between them, which is less than a pixel."""

Rows = Sequence[Mapping[str, Any]]
Column = list[Any] | dict[str, Any]
"""A column's values; or its different `words`, and `runs` of equal ones: number of the word and length, alternating; or
its first value and the differences of each from the one before (`steps`), in units of `unit`."""


def divided(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A specification without its data, which it then only names, and the data by name as JSON."""
    datasets = spec.get("datasets", {})
    rest = {key: value for key, value in spec.items() if key != "datasets"}
    return rest, {name: strict_json.dumps(packed(rows)) for name, rows in datasets.items()}


def packed(rows: Rows) -> dict[str, Any]:
    """Rows by column, in few characters; numbers that are not finite are null."""
    if not all(isinstance(row, Mapping) for row in rows):
        return {"values": list(rows)}
    names = dict.fromkeys(name for row in rows for name in row)
    return {"rows": len(rows), "columns": {name: _column([row.get(name) for row in rows]) for name in names}}


def _column(values: list[Any]) -> Column:
    if all(value is None or isinstance(value, str | bool) for value in values):
        return _in_runs(values)
    if any(isinstance(value, float) for value in values):
        values = rounded(values)
    return _shortest(values)


def _in_runs(values: list[Any]) -> Column:
    """Words: in a column of names, the same often follows itself."""
    words = {value: number for number, value in enumerate(dict.fromkeys(values))}
    runs = [number for word, own in groupby(values) for number in (words[word], sum(1 for _ in own))]
    return {"words": list(words), "runs": runs} if len(runs) < len(values) else values


def rounded(values: Sequence[Any]) -> list[Any]:
    """Numbers with `DIGITS` significant digits, and with more where `STEPS` need them; without a fraction as integers.

    >>> rounded([0.00123456, 12.3456, None, float("nan")])
    [0.001235, 12.35, None, None]
    """
    known = [value for value in values if _is_number(value) and math.isfinite(value)]
    step = (max(known) - min(known)) / STEPS if known else 0.0
    needed = math.floor(-math.log10(step)) if 0 < step < math.inf else -400
    return [_rounded(value, needed) if _is_number(value) else value for value in values]


def _rounded(value: float, needed: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    if abs(value) > 1e300:  # rounded up, it might be beyond the largest number
        return value
    short = float(f"{value:.{DIGITS}g}")
    if needed > DIGITS - 1 - math.floor(math.log10(abs(value) or 1)):
        short = round(float(value), needed)
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shortest(values: list[Any]) -> Column:
    """The column's values, or the differences between them, whichever is shorter."""
    steps = _in_steps(values)
    return steps if steps and len(strict_json.dumps(steps)) < len(strict_json.dumps(values)) else values


def _in_steps(values: list[Any]) -> dict[str, Any] | None:
    """Differences between values; None if there are gaps, or too many decimals for an exact sum."""
    if len(values) < 3 or not all(map(_is_number, values)):
        return None
    decimals = max(map(_decimals, values))
    if decimals > 6 or max(map(abs, values)) * 10**decimals >= 2**50:
        return None
    whole = [round(value * 10**decimals) for value in values]
    return {"unit": 10**decimals, "steps": [whole[0], *(after - before for before, after in pairwise(whole))]}


def _decimals(value: float) -> int:
    text = repr(value)
    return 99 if "e" in text else len(text.partition(".")[2]) if isinstance(value, float) else 0


def once() -> Callable[[str], bool]:
    """A function that is true for each name the first time."""
    seen: set[str] = set()

    def is_new(name: str) -> bool:
        if name in seen:
            return False
        seen.add(name)
        return True

    return is_new
