"""What `doctor` finds: single checks, and what they add up to for an engine."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ready", "limited", "missing", "not in this version"]
"""`limited`: the engine works, but not for everything; `missing`: without this it does not work."""

_WORST_FIRST: tuple[State, ...] = ("not in this version", "missing", "limited")


@dataclass(frozen=True)
class Remedy:
    """What fixes a finding."""

    packages: tuple[str, ...] = ()
    """Packages to install, by their Debian names."""
    commands: tuple[str, ...] = ()
    """What to run after that."""


NOTHING = Remedy()


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    what: str
    state: State
    details: str
    """What was found, or what follows from its absence."""
    remedy: Remedy = NOTHING


@dataclass(frozen=True)
class Diagnosis:
    """Everything about one engine."""

    engine: str
    about: str
    checks: tuple[Check, ...]
    install: str | None = None
    """The command line that installs what is missing; None if nothing is missing or no command can help."""
    by_hand: tuple[str, ...] = ()
    """Packages that are missing on a system whose package manager is not known, by their Debian names."""

    @property
    def state(self) -> State:
        """As bad as the worst of its checks."""
        found = {check.state for check in self.checks}
        return next((state for state in _WORST_FIRST if state in found), "ready")
