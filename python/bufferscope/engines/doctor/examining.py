"""Everything that the engines need on this machine."""

from bufferscope.engines import REGISTRY
from bufferscope.engines.doctor.findings import EngineCheck, EngineDiagnosis
from bufferscope.engines.doctor.system import System


def examine(system: System | None = None) -> list[EngineDiagnosis]:
    """Check everything that the engines need."""
    system = system or System()
    checked = [(each, tuple(each.checks(system))) for each in REGISTRY.values()]
    return [_diagnosis(each.name, each.about, checks, system) for each, checks in checked if checks]


def _diagnosis(name: str, about: str, checks: tuple[EngineCheck, ...], system: System) -> EngineDiagnosis:
    packages = tuple(dict.fromkeys(package for check in checks for package in check.remedy.packages))
    commands = dict.fromkeys(command for check in checks for command in check.remedy.commands)
    install = " && ".join([*system.install(packages), *commands])
    by_hand = () if system.can_install() else packages
    return EngineDiagnosis(name, about, checks, install or None, by_hand)
