"""The layers of the package: as ARCHITECTURE.md lists them, and without an import that the linter cannot see."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "bufferscope"
(CONTRACT,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS: list[str] = CONTRACT["layers"][::-1]
"""The lowest first."""
MOST = 15


def test_there_are_few_enough_to_know_them() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert found - {"__init__", "__main__"} == set(LAYERS)
    assert len(LAYERS) <= MOST


def test_the_map_lists_them_in_their_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.partition("| layer | content |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `python/bufferscope/(\w+)", table, re.MULTILINE) == LAYERS


def _of_the_root(path: Path) -> Iterator[str]:
    """What a module imports from `bufferscope` itself, as the linter cannot see."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "bufferscope":
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name == "bufferscope")


def test_nothing_is_taken_from_the_package_itself_but_the_core_and_layers() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.parent != PACKAGE:
            assert set(_of_the_root(path)) <= {"_core", *LAYERS}, path


@pytest.mark.parametrize(
    "planted",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bufferscope.cli.app import app\n",
        "def late() -> None:\n    from bufferscope.report import page\n",
    ],
    ids=["for a type alone", "in a function"],
)
def test_the_linter_finds_an_upward_import(tmp_path: Path, planted: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "bufferscope", ignore=shutil.ignore_patterns("*.so", "bin", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "bufferscope" / "stats" / "spread.py").open("a") as file:
        file.write(planted)
    linter = Path(sys.executable).with_name("lint-imports")
    command = [str(linter), "--no-cache", "--config", "pyproject.toml"]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "bufferscope.stats is not allowed to import bufferscope." in done.stdout
