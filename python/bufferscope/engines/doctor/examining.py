"""Everything that the engines need on this machine."""

from bufferscope.engines import PLANNED, carrying
from bufferscope.engines.doctor.findings import Check, Diagnosis
from bufferscope.engines.doctor.system import System


def examine(system: System | None = None) -> list[Diagnosis]:
    """Check everything that the engines need."""
    system = system or System()
    found = [_diagnosis(each.name, each.about, tuple(each.checks(system)), system) for each in carrying()]
    absent = [
        Diagnosis(name, about, (Check("engine", "not in this version", about),)) for name, about in PLANNED.items()
    ]
    return found + absent


def _diagnosis(name: str, about: str, checks: tuple[Check, ...], system: System) -> Diagnosis:
    packages = tuple(dict.fromkeys(package for check in checks for package in check.remedy.packages))
    commands = dict.fromkeys(command for check in checks for command in check.remedy.commands)
    install = " && ".join([*system.install(packages), *commands])
    by_hand = () if system.can_install() else packages
    return Diagnosis(name, about, checks, install or None, by_hand)
