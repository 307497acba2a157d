"""Which pings say something about the path of the data.

A ping to the gateway does not wait where the data waits. Only pings that cross the queues, the propagation delay and
the radio channel of the data show what a call, a game or a page would notice.
"""

from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.pings import Pings
from bufferscope.analysis.explanation.port_facts import port_settings, wifi_name
from bufferscope.analysis.explanation.senders import Way
from bufferscope.engines import engine_of
from bufferscope.model.network import NANOSECONDS, Port, probers, traffic_ends

LEAST_S = 0.005
"""Pings may lack this much of the data's round trip: CoDel's target, which is not noticeable."""
UNNAMED = {"near", "far"}
"""The ends of a capture with too many addresses to name them."""


def along_data(found: Evidence) -> list[Pings]:
    """The pings on the path of the data, in the file's order; all pings if the run has no data."""
    data = _data(found)
    return [each for each in found.pings if not data or _follows(found, each, data)]


def elsewhere(found: Evidence) -> str:
    """Where the pings go, for a message about those that are not on the path of the data."""
    ends = {entry["name"]: traffic_ends(found.run.scenario, entry) for entry in probers(found.run.scenario)}
    if all(set(ends[each.name]) == UNNAMED for each in found.pings):
        return "whether the pings take its path is not known"
    ways = ", ".join(dict.fromkeys(f"from {ends[each.name][0]} to {ends[each.name][1]}" for each in found.pings))
    return f"the pings go {ways}, and not along all of that path"


def _data(found: Evidence) -> list[Way]:
    """The paths of the data: that of the flows that last, or else that of the pages."""
    names = {each.way.entry["name"] for each in found.senders}
    lasting = [way for way in found.lasting if way.entry["name"] in names]
    return lasting or found.lasting or [way for way in found.ways.values() if way.entry["kind"] == "web"]


def _follows(found: Evidence, pings: Pings, data: list[Way]) -> bool:
    if engine_of(found.run.engine).observes:
        return any(_same_ends(found, pings, way) for way in data)
    crossed = {port.name for port in pings.way}
    missed = [[port for port in (*way.out, *way.back) if port.name not in crossed] for way in data]
    is_waiting = any(_queued_s(found, port) > LEAST_S for ports in missed for port in ports)
    return not is_waiting and any(sum(_delay_s(found, port) for port in ports) <= LEAST_S for ports in missed)


def _same_ends(found: Evidence, pings: Pings, way: Way) -> bool:
    """Whether an observed ping goes between the ends of a connection, whose path is not known."""
    scenario = found.run.scenario
    entry = next(entry for entry in probers(scenario) if entry["name"] == pings.name)
    ends = set(traffic_ends(scenario, entry))
    is_known = engine_of(found.run.engine).names_ends or ends != UNNAMED
    return is_known and ends == set(traffic_ends(scenario, way.entry))


def _queued_s(found: Evidence, port: Port) -> float:
    return found.queues[port.name].mean_s if port.name in found.queues else 0.0


def _delay_s(found: Evidence, port: Port) -> float:
    """What a port adds to a round trip; infinite if it loses or delays packets at random."""
    scenario = found.run.scenario
    is_random = "faults" in port_settings(scenario, port.name) or wifi_name(scenario, port.name) is not None
    return float("inf") if is_random else port.delay_ns / NANOSECONDS + _queued_s(found, port)
