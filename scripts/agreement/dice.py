"""Draws of the kinds that random scenarios need, and their values in TOML."""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeAlias

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value]"
"""A value of an experiment file."""
Table = dict[str, Value]


class Dice(Random):
    """Draws of the kinds that parameters need."""

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def scaled(self, low: float, high: float) -> float:
        """A number whose logarithm is uniformly distributed, to two digits."""
        return float(f"{low * (high / low) ** self.random():.2g}")

    def count(self, low: int, high: int) -> int:
        """A whole number of that kind."""
        return max(low, min(high, round(self.scaled(low, high))))

    def us(self, low_ms: float, high_ms: float) -> int:
        """A time of that kind, in microseconds."""
        return round(self.scaled(low_ms, high_ms) * 1000)

    def ms(self, low: float, high: float) -> str:
        """The same, as an experiment file has it."""
        return f"{self.us(low, high)}us"

    def some(self, **keys: Callable[[], Value]) -> Table:
        """Some of these keys; about half are absent, so that their defaults apply."""
        return {name: value() for name, value in keys.items() if self.chance(0.5)}


def written(value: Value) -> str:
    """A value in TOML, in one line."""
    if isinstance(value, bool | int | float | str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {written(each)}" for key, each in value.items()) + " }"
    return "[" + ", ".join(map(written, value)) + "]"
