"""Captures that a kernel makes while it carries a run."""

from pathlib import Path

from bufferscope import _core
from bufferscope.engines.capture_points import on_kernel
from bufferscope.model.scenario import Scenario
from bufferscope.store import CAPTURE

SNAPLEN = 96
"""Bytes that the agent stores of each packet: all headers of Ethernet, IPv4 and TCP."""


def recorder(directory: Path, scenario: Scenario) -> _core.PacketWriter:
    """Writes the packets that the agent sends into the directory of a run. Raises `OSError`."""
    interfaces = [(point.name, point.description) for point in on_kernel(scenario)]
    comment = "captured by the run in this directory; times are those of its records"
    return _core.PacketWriter(directory / CAPTURE, interfaces, SNAPLEN, comment)
