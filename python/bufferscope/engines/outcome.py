"""An engine's report about a run, besides the tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from bufferscope.store.metadata import Summary


@dataclass(frozen=True)
class Outcome:
    """How a run went."""

    engine_version: str
    mss_bytes: int
    """The TCP payload of a full packet."""
    sample_interval_ns: int
    """The sampling interval achieved."""
    summary: Summary
    warnings: list[str]
    tables: Mapping[str, int]
    """The number of rows of each table."""
    cpu_s: float | None = None
    """The CPU time of the engine's own processes; None if the engine runs in this process."""
