"""Choose the figures of a result: those that its experiment names, or else those that fit its traffic."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bufferscope.figures import NAMES, NEEDED, FigureName
from bufferscope.model.network import CARRYING, ports, probers, traffic_named
from bufferscope.model.recorded import unrecorded
from bufferscope.model.scenario import Scenario

if TYPE_CHECKING:
    from bufferscope.metrics.records import RunRecords


def chosen(runs: Sequence["RunRecords"]) -> tuple[FigureName, ...]:
    """The figures that the runs' experiments name, each once; if one names none, those that fit its traffic."""
    found: dict[FigureName, None] = {}
    for run in runs:
        named = [name for name in run.meta["document"].get("figures") or () if name in NAMES]
        found |= dict.fromkeys(named or fitting(run.scenario))
    return tuple(found)


def fitting(scenario: Scenario) -> tuple[FigureName, ...]:
    """The figures that show something of a scenario's traffic.

    A port with a rate has a queue, a ping or irtt has round-trip times, a TCP connection has a window, traffic that
    carries data has a goodput, and transfers with an end take a certain time. Figures of tables that are not recorded
    are left out.
    """
    empty = unrecorded(scenario)
    return tuple(name for name in _fitting(scenario) if not set(NEEDED[name]).intersection(empty))


def _fitting(scenario: Scenario) -> Iterator[FigureName]:
    if any(port.rate for port in ports(scenario).values()):
        yield "queue_length"
    if probers(scenario):
        yield "rtt"
    if traffic_named(scenario, "tcp", "bittorrent"):
        yield "cwnd"
    if traffic_named(scenario, *CARRYING):
        yield "goodput"
    if traffic_named(scenario, "web", "dns") or any(entry.get("bytes") for entry in traffic_named(scenario, "tcp")):
        yield "download_time"
