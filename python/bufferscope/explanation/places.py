"""Ports as an experiment file names them."""

from bufferscope.metrics.network import ports
from bufferscope.scenario import SIDES, PortSettings, Scenario, Side


def port_side(scenario: Scenario, name: str) -> tuple[str, Side]:
    """The link and the direction of a port."""
    number = list(ports(scenario)).index(name)
    return scenario["links"][number // 2]["name"], SIDES[number % 2]


def port_settings(scenario: Scenario, name: str) -> PortSettings:
    """A port's settings: queue, ring, wire."""
    number = list(ports(scenario)).index(name)
    return scenario["links"][number // 2][SIDES[number % 2]]
