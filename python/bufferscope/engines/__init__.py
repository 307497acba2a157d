"""What carries the packets. Each engine is one function from a point to records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bufferscope.engines import guest, host, sim
from bufferscope.engines.outcome import Outcome
from bufferscope.errors import InputError
from bufferscope.experiment import Point

Progress = Callable[[int, int], bool]
"""Called with the run's time and its duration in nanoseconds; False asks the engine to stop."""

Carry = Callable[[Point, int, Path, Progress], Outcome]
"""Runs a point with a seed and writes the tables into a directory."""


@dataclass(frozen=True)
class Engine:
    """One way to run a scenario."""

    name: str
    about: str
    run: Carry
    examine: Callable[[], str] = str
    """Adds what is to be known of it on this machine; raises `EngineError`, with what mends it, if it can't be used."""


ENGINES: Mapping[str, Engine] = {
    "sim": Engine("sim", "the embedded simulator: virtual time, repeatable, needs nothing", sim.run),
    "guest": Engine(
        "guest", "a real Linux kernel in a virtual machine: virtual time, repeatable", guest.run, guest.examine
    ),
    "host": Engine("host", "this machine's kernel, in network namespaces: real time", host.run, host.examine),
}

NOT_YET: Mapping[str, str] = {
    "live": "the path between this machine and a server",
}
"""Engines that the design has and this version has not."""


def engine(name: str) -> Engine:
    """The engine of a name; raises `InputError` that tells which there are."""
    if name in ENGINES:
        return ENGINES[name]
    there = ", ".join(f"{known.name} ({known.about})" for known in ENGINES.values())
    if name in NOT_YET:
        raise InputError(f"--engine {name}: not in this version of bufferscope; there is: {there}")
    raise InputError(f"--engine: found {name!r}; allowed: {there}")
