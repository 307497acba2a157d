"""The line whose buffer is sized, read with the units of experiment files."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bufferscope.base.errors import ExperimentError, InputError, check_number
from bufferscope.model.experiment import Experiment
from bufferscope.model.overrides import toml
from bufferscope.model.scenario import Scenario
from bufferscope.studies.choice.bottleneck import FRAME_BYTES

HEADER_BYTES = 14
"""What Ethernet adds to an IP packet in the queue."""
SIMULATED_PACKET_BYTES = FRAME_BYTES - HEADER_BYTES
"""The full IP packet of every engine."""
MOST_FLOWS = 1000
MOST_PACKETS, MOST_BYTES = 10_000_000, 2**32 - 1
"""The longest queues that experiment files and Linux' `sch_fifo` allow."""
SHORTEST_NS = 2
"""Half of it is the delay of each way."""
LEAST_PACKET_BYTES, MOST_PACKET_BYTES = 64, 65535
LEAST_TARGET = 0.5

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_PROBE = """\
title = "size"
duration = "1s"
[[link]]
name = "line"
ends = ["a", "b"]
rate = {rate}
delay = {delay}
queue = {{ qdisc = "bfifo", limit = {limit} }}
[[traffic]]
name = "load"
kind = "tcp"
from = "a"
to = "b"
congestion = {congestion}
"""
_HARMLESS = {"rate": "1mbit", "delay": "1ms", "limit": "150kb", "congestion": "cubic"}
T = TypeVar("T")


@dataclass(frozen=True)
class SizedLine:
    """A bottleneck, the path that it is on, and its load."""

    rate_bps: int
    rtt_ns: int
    """The round trip without queues."""
    flows: int = 1
    target: float = 0.98
    """The share of a very long queue's goodput that the queue must keep."""
    packet_bytes: int = SIMULATED_PACKET_BYTES
    """A full IP packet."""
    buffer_bytes: int | None = None
    """A given buffer, whose delay is asked for."""
    congestion: str = "cubic"
    notes: tuple[str, ...] = ()
    """What to know about the texts that the line was read from."""

    @property
    def frame_bytes(self) -> int:
        """What a full packet takes in the queue and on the wire."""
        return self.packet_bytes + HEADER_BYTES

    @property
    def bdp_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps * self.rtt_ns / 8e9

    @property
    def packet_s(self) -> float:
        """How long a full packet takes to send."""
        return self.frame_bytes * 8 / self.rate_bps

    def packets(self, size_bytes: float) -> int:
        """The full packets that hold this many bytes, at least one."""
        return max(1, math.ceil(round(size_bytes / self.frame_bytes, 6)))


def read_line(
    rate: str,
    rtt: str,
    *,
    flows: int = 1,
    target: str = "98%",
    packet: str = "1500b",
    buffer: str | None = None,
    congestion: str = "cubic",
) -> SizedLine:
    """A line from texts with units, as in experiment files. Raises `InputError` for the first one that is wrong."""
    rate_bps = _read("rate", rate, "rate", lambda found: _port(found)["rate"][0]["bits_per_second"])
    rtt_ns = _read("rtt", rtt, "delay", lambda found: _port(found)["delay_ns"])
    if rtt_ns < SHORTEST_NS:
        raise InputError(f"--rtt: found {rtt!r}; allowed: at least {SHORTEST_NS} ns, such as 40ms")
    check_number("flows", flows, 1, MOST_FLOWS)
    packet_bytes = _size("packet", packet)
    if not LEAST_PACKET_BYTES <= packet_bytes <= MOST_PACKET_BYTES:
        allowed = f"a size of an IP packet from {LEAST_PACKET_BYTES}b to {MOST_PACKET_BYTES}b"
        raise InputError(f"--packet: found {packet!r}; allowed: {allowed}, such as 1500b")
    buffer_bytes = None if buffer is None else _size("buffer", buffer)
    _read("congestion", congestion, "congestion", lambda _: 0)
    notes = _notes(rate)
    line = SizedLine(rate_bps, rtt_ns, int(flows), _share(target), packet_bytes, buffer_bytes, congestion, notes)
    most = min(MOST_PACKETS, MOST_BYTES // line.frame_bytes)
    if (held := line.packets(line.bdp_bytes)) > most:
        raise InputError(f"--rate and --rtt: the BDP is {held} packets; allowed: a queue of at most {most}")
    return line


def _size(option: str, value: str) -> int:
    return _read(option, value, "limit", lambda found: int(_port(found)["queue"]["limit_bytes"]))


def _port(scenario: Scenario) -> Any:
    return scenario["links"][0]["forward"]


def _read(option: str, value: str, slot: str, of: Callable[[Scenario], T]) -> T:
    """One quantity, which the loader of experiment files reads; its message names the option instead of the key."""
    if not isinstance(value, str):
        raise InputError(f"--{option}: found {value!r:.60}; allowed: a string with a unit, such as 10mbit or 40ms")
    try:
        return of(_probe(value, slot).points[0].scenario)
    except ExperimentError as error:
        first = str(error).partition("\n")[0]
        _, _, said = first.partition(f".{slot}: ")
        raise InputError(f"--{option}: {said or first}") from None


def _probe(value: str, slot: str) -> Experiment:
    """A file with one quantity."""
    words = {name: toml(default) for name, default in _HARMLESS.items()} | {slot: toml(value)}
    return Experiment("size", _PROBE.format(**words).encode(errors="replace"), "size")


def _notes(rate: str) -> tuple[str, ...]:
    """What the loader of experiment files says of a rate, such as one in bytes a second."""
    return tuple(
        f"--rate: {said}" for _, key, said in (note.partition("rate: ") for note in _probe(rate, "rate").notes) if key
    )


def _share(target: str) -> float:
    found = _PERCENT.fullmatch(target.strip()) if isinstance(target, str) else None
    share = float(found[1]) / 100 if found else math.nan
    if not LEAST_TARGET <= share <= 1:
        raise InputError(f"--target: found {target!r:.60}; allowed: {LEAST_TARGET:.0%} to 100%, such as 98%")
    return share
