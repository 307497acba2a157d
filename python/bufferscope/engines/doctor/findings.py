"""The findings of `doctor`: single checks, and the diagnosis of an engine that they lead to."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ready", "limited", "missing"]
"""`limited`: the engine works, but not for everything; `missing`: the engine does not work without this."""

_WORST_FIRST: tuple[State, ...] = ("missing", "limited")


@dataclass(frozen=True)
class Fix:
    """What fixes a finding."""

    packages: tuple[str, ...] = ()
    """Packages to install, by their Debian names."""
    commands: tuple[str, ...] = ()
    """Commands to run after the packages are installed."""


NOTHING = Fix()


@dataclass(frozen=True)
class EngineCheck:
    """One thing that was checked."""

    what: str
    state: State
    details: str
    """What was found, or the consequence of what is missing."""
    remedy: Fix = NOTHING


@dataclass(frozen=True)
class EngineDiagnosis:
    """Everything about one engine."""

    engine: str
    about: str
    checks: tuple[EngineCheck, ...]
    install: str | None = None
    """The command line that installs what is missing; None if nothing is missing or no command can help."""
    by_hand: tuple[str, ...] = ()
    """Missing packages, by their Debian names, if the system's package manager is not known."""

    @property
    def state(self) -> State:
        """The worst state of all checks."""
        found = {check.state for check in self.checks}
        return next((state for state in _WORST_FIRST if state in found), "ready")
