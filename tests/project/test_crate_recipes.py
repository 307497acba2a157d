"""The recipes of CONTRIBUTING.md that touch the crates, followed together in a copy, which has to compile.

That takes minutes, so `make test-recipes` does it, and `make test-slow`. `test_recipes.py` always checks that the
examples fit the lists.

The copy is in `target`, and shares the packages that cargo has built for the repository. Its crates have a version of
their own: otherwise cargo would take its files for those of the repository.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recipes import RECIPES, ROOT, copied, synchronised

pytestmark = pytest.mark.skipif(
    "WHOLE_CATALOGUE" not in os.environ, reason="it takes minutes: make test-recipes and make test-slow run it"
)
VERSIONS = {
    "Cargo.toml": r'^(version = "[^"]+)',
    "Cargo.lock": r'^(name = "bufferscope-\w+"\nversion = "[^"]+)',
}
"""Where cargo's files have the version of the crates."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository in which all recipes have been followed."""
    fresh, root = tmp_path_factory.mktemp("fresh"), ROOT / "target" / "recipes"
    copied(fresh)
    for recipe in RECIPES:
        recipe.follow(fresh)
    for name, pattern in VERSIONS.items():
        text = (fresh / name).read_text(encoding="utf-8")
        (fresh / name).write_text(re.sub(pattern, r"\1+recipes", text, flags=re.MULTILINE), encoding="utf-8")
    synchronised(fresh, root)
    return root


def test_every_crate_compiles_without_warnings(copy: Path) -> None:
    """With its tests, and with those of the examples."""
    # As the Makefile sets it: another value would have cargo build everything again.
    own = {"CARGO_TARGET_DIR": str(ROOT / "target"), "PYO3_PYTHON": sys.executable, "CARGO_TERM_COLOR": "never"}
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"} | own
    command = ["cargo", "check", "--workspace", "--all-targets", "--locked", "--offline"]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning: " not in done.stderr, done.stderr
