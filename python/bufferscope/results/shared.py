"""Repetitions in which flows share a flow queue: they are named, and may be set apart from a measurement."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bufferscope.store.run import Run

MOST_PAIRS = 2
"""The most pairs of flows that are named for a repetition."""


@dataclass(frozen=True)
class SharedRepetition:
    """A repetition in which flows share a flow queue of a port, so that the discipline does not keep them apart.

    Which repetitions these are depends on the seed of the hash, and on nothing that a document speaks of.
    """

    seed: int
    measured: float | None
    """Its value; None if it has none."""
    is_judged: bool
    """Whether it is part of the measurement: at least half of the point's repetitions are like it."""
    why: str
    """Which flows share a queue, and how often that happens."""

    @property
    def sentence(self) -> str:
        """It in words."""
        value = "not measured" if self.measured is None else f"{self.measured:.4g}"
        end = "" if self.is_judged else "; judged without it"
        return f"seed {self.seed}: {value}; {self.why}{end}"


def which_share(run: "Run") -> str | None:
    """Which flows of a run share a flow queue, in words; None if none do, or if its flow queues are not recorded."""
    if not run.meta["tables"].get("flow_queues"):
        return None
    from bufferscope.metrics.sharing import sharing

    return " and ".join(pair.sentence for pair in sharing(run)[:MOST_PAIRS]) or None
