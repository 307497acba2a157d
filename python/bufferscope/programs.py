"""The programs that are started by name, and the Debian packages that bring them: what `programs.txt` says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True)
class Program:
    """One line of the list."""

    names: tuple[str, ...]
    """What it is called; any of these will do."""
    packages: tuple[str, ...]
    """The Debian packages that bring it; none where it comes from elsewhere."""
    users: frozenset[str]
    """What needs it, in the list's words."""


@cache
def listed() -> Sequence[Program]:
    """Every program of the list, in its order."""
    rows = (line.split() for line in FILE.read_text(encoding="utf-8").splitlines() if line and line[0] != "#")
    return tuple(
        Program(
            tuple(names.split("|")),
            tuple(package for package in packages.split(",") if package != "-"),
            frozenset(users.split(",")),
        )
        for names, packages, users in rows
    )


def needed_by(*users: str) -> list[Program]:
    """What any of these needs."""
    return [program for program in listed() if program.users & set(users)]


def packages(names: Iterable[str]) -> tuple[str, ...]:
    """The Debian packages that bring these programs, each once. Raises `KeyError` for one that is not listed."""
    by_name = {name: program.packages for program in listed() for name in program.names}
    return tuple(dict.fromkeys(package for name in names for package in by_name[name]))
