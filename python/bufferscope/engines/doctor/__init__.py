"""Find out what each engine can use on this machine, what it lacks, and the one command that installs that."""

from collections.abc import Callable, Iterable, Mapping

from bufferscope.engines import ENGINES, NOT_YET
from bufferscope.engines.doctor.findings import Check, Diagnosis, State
from bufferscope.engines.doctor.system import System
from bufferscope.engines.guest import doctor as guest
from bufferscope.engines.host import doctor as host
from bufferscope.engines.sim import doctor as sim

__all__ = ["Check", "Diagnosis", "State", "System", "examine"]

_CHECKS: Mapping[str, Callable[[System], Iterable[Check]]] = {
    "sim": sim.checks,
    "guest": guest.checks,
    "host": host.checks,
}


def examine(system: System | None = None) -> list[Diagnosis]:
    """Check everything that the engines need."""
    system = system or System()
    found = [_diagnosis(name, engine.about, tuple(_CHECKS[name](system)), system) for name, engine in ENGINES.items()]
    absent = [
        Diagnosis(name, about, (Check("engine", "not in this version", about),)) for name, about in NOT_YET.items()
    ]
    return found + absent


def _diagnosis(name: str, about: str, checks: tuple[Check, ...], system: System) -> Diagnosis:
    packages = tuple(dict.fromkeys(package for check in checks for package in check.remedy.packages))
    commands = dict.fromkeys(command for check in checks for command in check.remedy.commands)
    install = " && ".join([*system.install(packages), *commands])
    by_hand = () if system.can_install() else packages
    return Diagnosis(name, about, checks, install or None, by_hand)
