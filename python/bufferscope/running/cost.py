"""How much work a run is likely to be, before anything is known of it: to show how much of many runs is done.

The simulator's time is that of its packets, so it is estimated how many there are: as many as the slowest rates of both
directions let through, on each link. A kernel in real time takes as long as the run.
"""

from statistics import fmean

from bufferscope.model.network import CARRYING, NANOSECONDS, bulk_flows, path, traffic_ends, traffic_named
from bufferscope.model.scenario import Scenario
from bufferscope.running.job import Task

PACKET_BITS = 12_112
HOP_S = 4e-7
"""Seconds of a processor for a packet on a link, with its acknowledgement and its records."""
ROW_S = 1e-6
"""The same for a row of samples."""
RUN_S = 0.005
"""The same for a run with hardly any packets."""


def expected_s(task: Task) -> float:
    """The seconds that a run is likely to take; right within a factor of some, and better in relation to other runs."""
    scenario = task.experiment.points[task.position].scenario
    if task.engine.real_time:
        return task.duration_ns / NANOSECONDS
    return RUN_S + HOP_S * _hops(scenario) + ROW_S * _rows(scenario)


def _hops(scenario: Scenario) -> float:
    """The packets of a run that is never idle, each counted on every link: as many as the slowest port lets through."""
    busy: dict[str, float] = {}
    for entry in traffic_named(scenario, *CARRYING):
        near, far = traffic_ends(scenario, entry)
        way = path(scenario, near, far)
        rates = {port.name: fmean(step.bits_per_second for step in port.rate) for port in way if port.rate}
        if rates:
            slowest = min(rates, key=lambda name: rates[name])
            busy[slowest] = rates[slowest] * len(way)
    return sum(busy.values()) / PACKET_BITS * scenario["duration_ns"] / NANOSECONDS


def _rows(scenario: Scenario) -> float:
    """The samples of queues and flows."""
    flows = len(scenario["traffic"]) + bulk_flows(scenario)
    return scenario["duration_ns"] / scenario["sample_interval_ns"] * (2 * len(scenario["links"]) + flows)
