"""All that an explanation of a run is drawn from, and what the records lack for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from bufferscope.analysis.explanation.losses import Losses, losses
from bufferscope.analysis.explanation.pings import Pings, pings
from bufferscope.analysis.explanation.port_facts import does_nothing
from bufferscope.analysis.explanation.senders import BULK, Sender, Way, load_window, senders, ways
from bufferscope.analysis.explanation.standing import StandingQueue, by_delay, standing
from bufferscope.metrics.records import RunRecords, was_changed
from bufferscope.metrics.window import Window
from bufferscope.model.network import Port, ports
from bufferscope.model.recorded import unrecorded

MOST_FLOWS = 1000
"""The most flows whose losses are looked up one by one."""


@dataclass(frozen=True)
class Evidence:
    """What a run's records show."""

    run: RunRecords
    window: Window
    """The part of the run with load."""
    ways: Mapping[str, Way]
    queues: Mapping[str, StandingQueue]
    senders: tuple[Sender, ...]
    losses: Mapping[str, Losses]
    pings: tuple[Pings, ...]
    missing: tuple[str, ...]
    """Tables that were not recorded."""
    is_changed: bool
    """Whether the run was changed on its way, so that its scenario does not hold for all of it."""

    @property
    def ports(self) -> dict[str, Port]:
        """The scenario's ports by name."""
        return ports(self.run.scenario)

    @property
    def lasting(self) -> list[Way]:
        """The ways of traffic whose flows last."""
        return [way for way in self.ways.values() if way.entry["kind"] in BULK]

    @property
    def standing(self) -> list[StandingQueue]:
        """The queues that data or pings meet, the longest median delay first."""
        met = {port.name for way in self.ways.values() for port in (*way.out, *way.back)}
        return [each for each in by_delay(self.queues) if each.port in met]

    def is_unmanaged(self, queue: StandingQueue) -> bool:
        """Whether the deepest layer of a port does nothing about its queue until it is full."""
        return queue.deepest.layer == "ring" or does_nothing(self.ports[queue.port].queue)

    def crossing(self, port: str) -> list[Sender]:
        """The flows whose data crosses a port."""
        return [each for each in self.senders if port in {crossed.name for crossed in each.way.out}]

    def pings_across(self, port: str) -> list[Pings]:
        """The probers whose probes or answers cross a port."""
        return [each for each in self.pings if port in {crossed.name for crossed in each.way}]


def evidence(run: RunRecords) -> Evidence:
    """Gather the evidence of a run."""
    window = load_window(run)
    known = ways(run, window)
    flows = senders(run, window, known)
    return Evidence(
        run=run,
        window=window,
        ways=known,
        queues=standing(run, window),
        senders=tuple(flows),
        losses=losses(run, window, flows[:MOST_FLOWS]),
        pings=tuple(pings(run, window)),
        missing=tuple(unrecorded(run.scenario)),
        is_changed=was_changed(run),
    )
