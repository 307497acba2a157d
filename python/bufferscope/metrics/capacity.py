"""The rate of every port over time, as its link recorded it: the table `capacity`.

Whatever needs the rate of a port at some time, or the number of bits that it can send in an interval, uses this module.
The scenario has the planned rates only: an engine may have set them a moment later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS, ports


@dataclass(frozen=True, eq=False)
class Capacity:
    """The rate of one port over time."""

    steps: pl.DataFrame
    """`t_ns, rate_bps`: from `t_ns` on, the link sends `rate_bps` bits per second, which may be 0.

    In order of time, the first at 0.
    """

    def at(self, t_ns: int) -> int:
        """Bits per second at `t_ns`."""
        return int(self.steps["rate_bps"][bisect_right(self.steps["t_ns"], t_ns) - 1])

    def bits(self, start_ns: int, end_ns: int) -> float:
        """The integral of the rate from `start_ns` to `end_ns`: the bits that the port can send."""
        return bits(self.steps["t_ns"].to_list(), self.steps["rate_bps"].to_list(), start_ns, end_ns)

    @property
    def is_constant(self) -> bool:
        """Whether the rate never changed."""
        return self.steps.height == 1


def capacities(run: RunRecords) -> Mapping[str, Capacity]:
    """The capacity of each port that has one, by name, in the order of the scenario's ports."""
    usable = steps(run.capacity.lazy(), "port").collect(engine="in-memory")
    found = usable.partition_by("port", as_dict=True, include_key=False)
    return {name: Capacity(found[name,]) for name in ports(run.scenario) if (name,) in found}


def steps(rows: pl.LazyFrame, *port: str) -> pl.LazyFrame:
    """The steps of every port in order of time, from rows of the table; the columns `port` identify a port.

    A port's first rate holds from the start, even if its first row is later.
    """
    usable = rows.filter(pl.col("rate_bps") >= 0).sort("t_ns", maintain_order=True)
    is_first = pl.int_range(pl.len()).over(port) == 0
    return usable.select(*port, pl.when(is_first).then(0).otherwise("t_ns").alias("t_ns"), "rate_bps")


def bits(times_ns: Sequence[int], rates_bps: Sequence[int], start_ns: int, end_ns: int) -> float:
    """The integral from `start_ns` to `end_ns` of a rate that has these steps."""
    return sum(
        rate * max(0, min(end, end_ns) - max(start, start_ns)) / NANOSECONDS
        for rate, start, end in zip(rates_bps, times_ns, [*times_ns[1:], end_ns], strict=True)
    )
