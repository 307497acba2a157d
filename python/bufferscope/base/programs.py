"""The programs that are started by name, and the Debian packages that contain them, as listed in `programs.txt`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True)
class Program:
    """One line of the list."""

    names: tuple[str, ...]
    """The program's names; any of them will do."""
    packages: tuple[str, ...]
    """The Debian packages that contain it; none if it comes from elsewhere."""
    users: frozenset[str]
    """The parts of bufferscope that need it, named as in the list."""


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
    """The programs that any of these users needs."""
    return [program for program in listed() if program.users & set(users)]


def packages(names: Iterable[str]) -> tuple[str, ...]:
    """The Debian packages that contain these programs, each once. Raises `KeyError` for an unlisted program."""
    by_name = {name: program.packages for program in listed() for name in program.names}
    return tuple(dict.fromkeys(package for name in names for package in by_name[name]))
