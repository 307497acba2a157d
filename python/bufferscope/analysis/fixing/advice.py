"""Advice: the steps that remove the queues of a measurement, for one kind of device."""

from dataclasses import dataclass

from bufferscope.analysis.fixing.framing import Framing
from bufferscope.analysis.fixing.located import LocatedQueue
from bufferscope.analysis.fixing.rates import ShaperRate
from bufferscope.analysis.fixing.tc import TailDrop
from bufferscope.engines.local.facts import MachineFacts
from bufferscope.metrics.records import RunRecords


@dataclass(frozen=True)
class Step:
    """Something to do in one place."""

    where: str
    """On which device, as which user."""
    why: str
    """Why it helps, in sentences."""
    lines: tuple[str, ...]
    """Commands to type; or settings to enter."""
    are_commands: bool = True
    """Whether the lines are commands."""
    undo: tuple[str, ...] = ()
    """What restores the settings before."""
    notes: tuple[str, ...] = ()
    """What else to know, in sentences."""


@dataclass(frozen=True)
class Case:
    """What a step depends on."""

    run: RunRecords
    queues: tuple[LocatedQueue, ...]
    rates: tuple[ShaperRate, ...]
    """Of the directions of the queues, as far as their goodput was measured; the upload comes first."""
    framing: Framing
    interface: str | None
    """The interface to shape, if it was named."""
    qdisc: str | None
    """The discipline to set, if it was named."""
    machine: MachineFacts | None
    """This machine; None if nothing is known of it."""

    @property
    def tail(self) -> TailDrop:
        """What the length of a tail-drop queue depends on, for a load as in the test."""
        rtt_ns: int | None = self.run.meta["summary"]["live"]["verdict"]["idle"]["rtt"]["p50_ns"]
        loads = [each["load"] for queue in self.queues for each in queue.phase["numbers"]["directions"]]
        return TailDrop(rtt_ns, max((load["flows"] for load in loads if load), default=1))

    @property
    def varies(self) -> bool:
        """Whether a rate has no fixed value."""
        return any(rate.varies for rate in self.rates)

    @property
    def whys(self) -> tuple[str, ...]:
        """How each rate was computed."""
        return tuple(rate.why for rate in self.rates)


@dataclass(frozen=True)
class Advice:
    """What to do about the queues of a measurement."""

    target: str
    """The kind of device that is set, as for `--device`; empty without a queue."""
    queues: tuple[LocatedQueue, ...]
    """The queues that can be cured, at most one in each direction."""
    rates: tuple[ShaperRate, ...]
    """The rates of shapers for these directions; the upload comes first."""
    steps: tuple[Step, ...]
    """What to do."""
    reasons: tuple[str, ...]
    """Why there are no steps, or none for some of the queues."""
