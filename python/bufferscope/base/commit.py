"""The commit that this bufferscope was built from, for `--version` and for `run.json`."""

import subprocess
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
WRITTEN = "bin/commit"
"""The file in which `make wheel` leaves the commit, below the package."""
DESCRIBE = ("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40")
"""The commit, followed by `-dirty` if tracked files have changed since."""


@cache
def commit() -> str:
    """The full hash of the commit, with `-dirty` behind it if files were changed since; empty if it is not known.

    In a git checkout, git is asked. In an installed wheel, `make wheel` has left it in a file. It is not known of a
    source archive, or of a wheel that was built in another way.
    """
    return commit_of(PACKAGE)


def commit_of(package: Path) -> str:
    """The commit of the package in this directory."""
    checkout = package.parents[1]
    if (checkout / ".git").exists() and (checkout / "python" / package.name) == package:
        return _described(checkout)
    try:
        return (package / WRITTEN).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _described(checkout: Path) -> str:
    """The answer of git; empty without git, and where git refuses to read a checkout of another user."""
    try:
        done = subprocess.run(DESCRIBE, cwd=checkout, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
