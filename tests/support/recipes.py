"""The recipes of CONTRIBUTING.md, each with an example, and copies of the repository in which they are followed.

A directory of `tests/project/recipes` has the new files of its example at their paths in the repository. Its
`recipe.toml` has the heading of the section, the lines that lists get, the directories of snapshots that the tests then
rewrite, and what the section names besides.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "tests" / "project" / "recipes"
CODE = ("python/", "crates/")


@dataclass(frozen=True)
class Line:
    """Lines that are added to a list, after one that the list has."""

    path: str
    after: str
    added: str


@dataclass(frozen=True)
class Recipe:
    """What a section of CONTRIBUTING.md asks for, with an example."""

    heading: str
    directory: Path
    files: tuple[str, ...]
    """The paths of the new files."""
    lines: tuple[Line, ...]
    snapshots: frozenset[str]
    """The directories of snapshots that change."""
    others: frozenset[str]
    """What the section names although the example does not change it."""

    @property
    def section(self) -> str:
        """The text of the section."""
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        return text.partition(f"\n### {self.heading}\n")[2].partition("\n### ")[0]

    @property
    def named(self) -> set[str]:
        """The paths of code that the section names."""
        return {path for path in re.findall(r"`([\w./-]+)`", self.section) if path.startswith(CODE)}

    @property
    def is_of_crates(self) -> bool:
        """Whether it changes the crates, so that these have to be built again."""
        return any(path.startswith("crates/") for path in (*self.files, *(line.path for line in self.lines)))

    def follow(self, root: Path) -> None:
        """Do it in a copy of the repository."""
        for path in self.files:
            assert not (root / path).exists(), path
            shutil.copyfile(self.directory / path, root / path)
        for line in self.lines:
            text = (root / line.path).read_text(encoding="utf-8")
            assert text.count(line.after) == 1, (line.path, line.after)
            (root / line.path).write_text(text.replace(line.after, line.after + line.added), encoding="utf-8")


def _recipe(directory: Path) -> Recipe:
    declared = tomllib.loads((directory / "recipe.toml").read_text(encoding="utf-8"))
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    files = tuple(str(path.relative_to(directory)) for path in paths if path.name != "recipe.toml")
    lines = tuple(Line(**line) for line in declared["line"])
    snapshots, others = (frozenset(declared.get(key, ())) for key in ("snapshots", "others"))
    return Recipe(declared["heading"], directory, files, lines, snapshots, others)


RECIPES = tuple(_recipe(path.parent) for path in sorted(EXAMPLES.glob("*/recipe.toml")))


def copied(to: Path) -> None:
    """Copy the files of the repository, with their changes that are not committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in filter(None, listed.split("\0")):
        if (ROOT / path).exists():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, to / path)


def synchronised(source: Path, to: Path) -> None:
    """Make the files of a directory those of another. What is equal keeps its time, by which cargo sees changes."""
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for path in [path for path in to.rglob("*") if path.is_file() and path.relative_to(to) not in wanted]:
        path.unlink()
    for path in wanted:
        content = (source / path).read_bytes()
        if not (to / path).exists() or (to / path).read_bytes() != content:
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / path, to / path)


def python(root: Path, *arguments: str) -> str:
    """What a program prints that uses the package of a copy."""
    paths = os.pathsep.join([str(root / "python"), str(ROOT / "scripts" / "reference")])
    environment = os.environ | {"PYTHONPATH": paths, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
