"""The rate of every port over time, as its link recorded it: the table `capacity`.

Everything that needs a rate at some time, or the bits that fit through a port, reads it here. What the experiment asked
for is in the scenario, and an engine may have set it a moment later.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from bufferscope.metrics.network import NANOSECONDS, ports
from bufferscope.metrics.records import RunRecords


@dataclass(frozen=True, eq=False)
class Capacity:
    """The rate of one port over time."""

    steps: pl.DataFrame
    """`t_ns, rate_bps`: from `t_ns` on, the link sends `rate_bps` bits per second. In order of time, the first at 0."""

    def at(self, t_ns: int) -> int:
        """Bits per second at `t_ns`."""
        return int(self.steps["rate_bps"][bisect_right(self.steps["t_ns"], t_ns) - 1])

    def bits(self, start_ns: int, end_ns: int) -> float:
        """The integral of the rate from `start_ns` to `end_ns`: the bits that fit through."""
        times: list[int] = self.steps["t_ns"].to_list()
        rates: list[int] = self.steps["rate_bps"].to_list()
        return sum(
            rate * max(0, min(end, end_ns) - max(start, start_ns)) / NANOSECONDS
            for rate, start, end in zip(rates, times, [*times[1:], end_ns], strict=True)
        )

    @property
    def is_constant(self) -> bool:
        """Whether the rate never changed."""
        return self.steps.height == 1


def capacities(run: RunRecords) -> Mapping[str, Capacity]:
    """The capacity of each port that has one, by name, in the order of the scenario's ports."""
    usable = run.capacity.filter(pl.col("rate_bps") > 0).sort("t_ns", maintain_order=True)
    found = usable.partition_by("port", as_dict=True)
    return {name: Capacity(_from_0(found[name,])) for name in ports(run.scenario) if (name,) in found}


def _from_0(rows: pl.DataFrame) -> pl.DataFrame:
    """The steps of a port; its first rate holds from the start, even if the records say nothing of that time."""
    first = pl.int_range(pl.len()) == 0
    return rows.select(pl.when(first).then(0).otherwise("t_ns").alias("t_ns"), "rate_bps")
