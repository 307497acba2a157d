"""The recipes of CONTRIBUTING.md that touch the crates, followed together in a copy, which is then built and tested.

That takes minutes, so `make test-recipes` does it, and `make test-slow`. `test_recipes.py` always checks that the
examples fit the lists.

The copy is in `target`, and shares the packages that cargo has built for the repository. Its crates have a version of
their own: otherwise cargo would take its files for those of the repository.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from laboratory import ROUTED
from recipes import RECIPES, ROOT, copied, python, synchronised

from bufferscope import _core

pytestmark = pytest.mark.skipif(
    "WHOLE_CATALOGUE" not in os.environ, reason="it takes minutes: make test-recipes and make test-slow run it"
)
CRATES = tuple(f"--package=bufferscope-{name}" for name in ("scenario", "programs", "sim"))
"""The crates that the recipes change."""
LISTS = (
    "tests/base/test_naming.py",
    "tests/cli/test_completion.py",
    "tests/figures/test_figures_trade_offs.py",
    "tests/model/test_closed_sets.py",
    "tests/model/test_scenario.py",
    "tests/studies/test_choose.py",
)
"""Tests that compare what the core lists with what the package knows."""
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


def cargo(root: Path, *arguments: str, **variables: str) -> str:
    """What cargo prints about the copy; no crate may have a warning."""
    # As the Makefile sets it: another value would have cargo build everything again.
    own = {"CARGO_TARGET_DIR": str(ROOT / "target"), "PYO3_PYTHON": sys.executable, "CARGO_TERM_COLOR": "never"}
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"} | own | variables
    command = ["cargo", *arguments, "--locked", "--offline"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning: " not in done.stderr, done.stderr
    return done.stdout


def snapshots(root: Path) -> Mapping[str, bytes]:
    """The files that the tests of the crates compare with, by their paths."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("crates/*/tests/it/snapshots/*.snap")}


def test_every_crate_compiles(copy: Path) -> None:
    cargo(copy, "check", "--workspace", "--all-targets")


def test_the_tests_of_the_crates_pass_once_the_snapshots_that_the_recipes_name_are_accepted(copy: Path) -> None:
    before = snapshots(ROOT)
    # First those with snapshots: one of them is the schema's text, which is compiled into the crates.
    cargo(copy, "test", "--test", "it", *CRATES, INSTA_UPDATE="always")
    cargo(copy, "test", "--lib", *CRATES)
    changed = {str(Path(path).parent) for path, content in snapshots(copy).items() if before.get(path) != content}
    assert changed == {directory for recipe in RECIPES for directory in recipe.snapshots}


@pytest.fixture(scope="module")
def built(copy: Path) -> Path:
    """The copy with its extension module, and with what is generated from that."""
    cargo(copy, "build", "--package=bufferscope-python")
    module = copy / "python" / "bufferscope" / Path(str(_core.__file__)).name
    module.unlink(missing_ok=True)
    module.symlink_to(ROOT / "target" / "debug" / "lib_core.so")
    python(copy, "scripts/reference")
    return copy


def test_the_lists_of_the_package_have_what_the_core_has(built: Path) -> None:
    # The catalogue has no experiment with the figure of the example.
    but = "--deselect=tests/model/test_scenario.py::test_the_words_of_a_file"
    python(built, "-m", "pytest", "-p", "no:cacheprovider", "-q", but, *LISTS)


LAB = (
    ROUTED.replace('qdisc = "pfifo"', 'qdisc = "skbprio"').replace('congestion = "reno"', 'congestion = "scalable"')
    + """
[[traffic]]
name = "time"
kind = "ntp"
from = "h1"
to = "h2"
poll = "100ms"
dscp = 4
"""
)
"""The requests for the time have the highest priority in the queue."""
USES = """
import json, sys
import bufferscope as bs
import experiment_file, queues
from bufferscope.model.experiment import load

(run,) = bs.load(sys.argv[1]).runs
answers = run.probes.filter(run.probes["probe"] == "time")["rtt_ns"]
messages = []
for key in ("link.line.queue.qdisc", "traffic.bulk.congestion", "traffic.time.kind"):
    try:
        load(sys.argv[2], [f"{key}='{sys.argv[3]}'"])
    except bs.ExperimentError as error:
        messages.append(str(error))
print(json.dumps({
    "lost": answers.null_count(), "longest": answers.max(), "messages": messages,
    "pages": [queues.page(), experiment_file.page()],
}))
"""


def test_they_run_together_and_are_known_everywhere(built: Path, tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(LAB, encoding="utf-8")
    lab = str(tmp_path / "lab.toml")
    (run,) = json.loads(python(built, "-m", "bufferscope", "run", lab, "--json", "--out", str(tmp_path)))["runs"]
    assert run["metrics"]["drops.r1>h2"] > 0
    told = json.loads(python(built, "-c", USES, str(tmp_path / "lab"), lab, "nonsense"))
    # The path has 22 ms, and a packet of 1.2 ms is on the wire; 20 packets in the queue would add 24 ms.
    assert told["lost"] == 0
    assert 22e6 < told["longest"] < 25e6
    for name, message in zip(("skbprio", "scalable", "ntp"), told["messages"], strict=True):
        assert f" {name}," in message
    assert all("skbprio" in page for page in told["pages"])
    assert "skbprio limit 20" in python(built, "-m", "bufferscope", "commands", lab)
    for option, name in [("qdiscs", "skbprio"), ("controls", "scalable"), ("traffic", "ntp")]:
        rows = json.loads(python(built, "-m", "bufferscope", "list", f"--{option}", "--json"))
        assert name in [row["name"] for row in rows[option]]
