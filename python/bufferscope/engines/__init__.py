"""The engines, which carry the packets. Each engine is essentially one function, from a point to its records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from bufferscope.base.errors import InputError
from bufferscope.engines.guest import engine as guest
from bufferscope.engines.host import engine as host
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.sim import engine as sim
from bufferscope.model.experiment import Point

Progress = Callable[[int, int], bool]
"""Called with the run's time and its duration in nanoseconds; False asks the engine to stop."""

Carry = Callable[[Point, int, Path, Progress], Outcome]
"""Runs a point with a seed, and writes the tables to a directory."""


class Together(Protocol):
    """Runs points one after the other, and writes their tables into shared files in one directory."""

    def run(self, point: Point, seed: int, progress: Progress) -> Outcome:
        """Run a point with a seed. After an error, the tables are incomplete and must not be used."""

    def finish(self) -> None:
        """Complete the tables."""


@dataclass(frozen=True)
class Engine:
    """One way to run a scenario."""

    name: str
    about: str
    run: Carry
    examine: Callable[[], object] = lambda: None
    """Raises `EngineError`, with the remedy, if this machine lacks what every run needs."""
    refusals: Callable[[Sequence[Point]], list[str | None]] = lambda points: [None] * len(points)
    """For each of these points, why the engine cannot run it on this machine; None if it can."""
    memory_bytes: Callable[[Point], int] = lambda point: 0
    """An estimate of the memory that a run of this point takes; 0 if there is none."""
    identity: Callable[[], str | None] = lambda: None
    """A digest of everything that a run's records depend on besides scenario and seed: with the same identity, a run
    gives the same records. None if the engine's runs are never the same."""
    real_time: bool = False
    """Whether its runs follow the machine's clock; then other load on the machine disturbs them."""
    together: Callable[[Path], Together] | None = None
    """Starts a partition in a directory; None if each run needs a directory of its own."""
    kernel: str | None = None
    """The kernel that the user chose; None if the engine uses its default or offers no choice."""
    capture: bool = False
    """Whether it captures the packets while it runs."""


ENGINES: Mapping[str, Engine] = {
    "sim": Engine(
        "sim",
        "the embedded simulator: virtual time, repeatable, needs nothing",
        sim.run,
        refusals=sim.refusals,
        memory_bytes=sim.memory_bytes,
        identity=sim.identity,
        together=sim.Together,
    ),
    "guest": Engine(
        "guest",
        "a real Linux kernel in a virtual machine: virtual time, repeatable",
        guest.run,
        guest.examine,
        guest.refusals,
        identity=guest.identity,
    ),
    "host": Engine(
        "host",
        "this machine's kernel, in network namespaces: real time",
        host.run,
        host.capabilities,
        host.refusals,
        real_time=True,
    ),
}

CAPTURING = ("guest", "host")
"""The engines that can capture packets while they run. A simulated run can be repeated to see its packets."""

NOT_YET: Mapping[str, str] = {
    "live": "the path between this machine and a server",
}
"""Engines that are planned but not in this version."""

OBSERVERS: Mapping[str, str] = {
    "capture": "bufferscope inspect",
    "import": "bufferscope import",
}
"""The engines of runs that others observed, each with the command that stores them; they carry no packets."""


def engines(
    names: str | Sequence[str], option: str = "--engine", kernel: str | None = None, *, capture: bool = False
) -> tuple[Engine, ...]:
    """The engines named in a list or in a text with commas (`sim,guest`); the guest engine gets this kernel.

    With `capture`, those that run on a kernel capture the packets. Raises `InputError` for an unknown name, for a name
    given twice, for a kernel if the guest is not among the engines, and for a capture if none of them can. `option` is
    the name of the option that `names` comes from, for the message.
    """
    words = names.split(",") if isinstance(names, str) else list(names)
    chosen = [_engine(word.strip(), option) for word in words]
    if len(set(chosen)) < len(chosen):
        raise InputError(f"{option}: found {','.join(words)}; allowed: each engine once")
    found = tuple(chosen) if kernel is None else _with_kernel(chosen, kernel, option)
    return _with_capture(found, option) if capture else found


def one_engine(name: str, kernel: str | None = None) -> Engine:
    """The engine of this name; raises `InputError` as `engines` does, and if several are named."""
    found = engines(name, kernel=kernel)
    if len(found) > 1:
        raise InputError(f"--engine: found {name}; allowed: one engine, because queues are compared with one another")
    return found[0]


def _with_kernel(chosen: Sequence[Engine], kernel: str, option: str) -> tuple[Engine, ...]:
    """The same engines, with this kernel series (`6.12`) or release for the guest instead of the default."""
    guests = [engine for engine in chosen if engine.name == "guest"]
    if not guests:
        named = ",".join(engine.name for engine in chosen)
        raise InputError(f"--kernel {kernel}: only the guest's kernel can be chosen, but {option} is {named}")
    return tuple(
        replace(
            engine,
            run=partial(guest.run, kernel=kernel),
            examine=partial(guest.examine, kernel),
            identity=partial(guest.identity, kernel),
            kernel=kernel,
        )
        if engine in guests
        else engine
        for engine in chosen
    )


def _with_capture(chosen: Sequence[Engine], option: str) -> tuple[Engine, ...]:
    """The same engines, with those that run on a kernel capturing packets."""
    if not any(engine.name in CAPTURING for engine in chosen):
        raise InputError(
            f"--capture: {option} is {', '.join(engine.name for engine in chosen)}, whose packets need no capture: "
            "`bufferscope export RUN --format pcapng` simulates the run again and writes them"
        )
    return tuple(_capturing(engine) for engine in chosen)


def _capturing(engine: Engine) -> Engine:
    if engine.name == "guest":
        run: Carry = partial(guest.run, kernel=engine.kernel, capture=True)
        return replace(engine, run=run, identity=partial(guest.identity, engine.kernel, capture=True), capture=True)
    if engine.name == "host":
        return replace(engine, run=partial(host.run, capture=True), capture=True)
    return engine


def _engine(name: str, option: str) -> Engine:
    if name in ENGINES:
        return ENGINES[name]
    there = ", ".join(f"{known.name} ({known.about})" for known in ENGINES.values())
    if name in OBSERVERS:
        raise InputError(f"{option} {name}: its runs are made by `{OBSERVERS[name]}`; allowed here: {there}")
    if name in NOT_YET:
        raise InputError(f"{option} {name}: not in this version of bufferscope; there is: {there}")
    raise InputError(f"{option}: found {name!r}; allowed: {there}")
