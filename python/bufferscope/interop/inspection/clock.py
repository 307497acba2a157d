"""A capture's clock that ticks more slowly than round trips take."""

import math
from collections.abc import Iterator
from pathlib import Path

LEAST_TICK_NS = 100_000
"""Of a finer clock, a round trip of 0 is one that is really short, as within a host."""
MS = 1e6
TABLES = ("round_trips", "probes")


def clock_tick_ns(directory: Path) -> int | None:
    """The tick of the clock if round trips in these tables are 0 for it, or 0 if all of them are; otherwise None.

    The tick is the greatest common divisor of the round trips.
    """
    import polars as pl

    files = [file for table in TABLES if (file := directory / f"{table}.parquet").exists()]
    found = pl.concat([pl.scan_parquet(file).select("rtt_ns").drop_nulls() for file in files])
    if found.select(pl.col("rtt_ns").min()).collect().item() != 0:
        return None
    tick_ns = math.gcd(*found.unique().collect()["rtt_ns"])
    return tick_ns if tick_ns == 0 or tick_ns >= LEAST_TICK_NS else None


def coarse(tick_ns: int | None) -> Iterator[str]:
    """The warning about a coarse clock."""
    if tick_ns == 0:
        yield "all round trips are 0: the capture's clock did not advance, so that its times are not known"
    elif tick_ns is not None:
        yield (
            f"the capture's clock ticks every {tick_ns / MS:.3g} ms: each round trip may be as much longer or shorter, "
            "and of those of 0 it is only known that they are shorter"
        )
