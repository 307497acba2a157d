"""The recipes of CONTRIBUTING.md, followed in a copy: what they name is all that has to be touched.

These are the recipes for Python; `test_crate_recipes.py` has the others. Tests, documents and scripts that a section
names are for people.
"""

import json
import shutil
from pathlib import Path

import pytest
from laboratory import SMALL
from recipes import RECIPES, ROOT, Recipe, python

from bufferscope import _core


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.heading)
def test_a_recipe_names_what_has_to_be_touched_and_nothing_else(recipe: Recipe) -> None:
    directories = {str(Path(path).parent) for path in recipe.files}
    assert recipe.named == {line.path for line in recipe.lines} | directories | recipe.snapshots | recipe.others
    assert all((ROOT / path).exists() for path in recipe.named)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.heading)
def test_an_example_fits_the_lists(recipe: Recipe, tmp_path: Path) -> None:
    for path in (*recipe.files, *(line.path for line in recipe.lines)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    for path in {line.path for line in recipe.lines}:
        shutil.copyfile(ROOT / path, tmp_path / path)
    assert not any((ROOT / path).exists() for path in recipe.files)
    recipe.follow(tmp_path)
    assert all(line.added in (tmp_path / line.path).read_text(encoding="utf-8") for line in recipe.lines)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which all recipes for Python have been followed."""
    root = tmp_path_factory.mktemp("copy")
    left_out = shutil.ignore_patterns("*.so", "bin", "explorer", "__pycache__")
    shutil.copytree(ROOT / "python", root / "python", ignore=left_out)
    core = Path(str(_core.__file__)).resolve()
    (root / "python" / "bufferscope" / Path(str(_core.__file__)).name).symlink_to(core)
    for recipe in RECIPES:
        if not recipe.is_of_crates:
            recipe.follow(root)
    return root


DECLARATIONS = """
import sys
from bufferscope.figures import NAMES
from bufferscope.model.figure_names import needed
from bufferscope.model.metric_definitions import definitions
print([each.name for each in definitions()], [needed(name) for name in NAMES])
print(*{"altair", "numpy", "polars", "scipy"} & set(sys.modules), file=sys.stderr)
assert not {"altair", "numpy", "polars", "scipy"} & set(sys.modules)
"""
USES = """
import json
import bufferscope as bs
import metrics_list, python_api
from bufferscope.metrics import metric
from bufferscope.metrics.key_metrics import heading

result = bs.load("results/lab")
(run,) = result.runs
print(json.dumps({
    "chosen": list(result.figures),
    "chart": bs.figures.rtt_ticks(result).to_dict(),
    "times": run.probes["rtt_ns"].drop_nulls().to_list(),
    "any percentile": float(metric(run, "spread.p0_ms")),
    "heading": heading("spread.rtt_ms"),
    "metrics": metrics_list.page(),
    "python": python_api.page(),
}))
"""


def test_declarations_are_read_without_the_large_libraries(copy: Path) -> None:
    told = python(copy, "-c", DECLARATIONS)
    assert "spread.p<N>_ms" in told


def test_a_metric_and_a_figure_work_everywhere(copy: Path) -> None:
    named = SMALL.replace('["rtt"]', '["rtt", "rtt_ticks"]')
    assert named != SMALL
    (copy / "lab.toml").write_text(named, encoding="utf-8")
    ran = json.loads(python(copy, "-m", "bufferscope", "run", "lab.toml", "--json"))
    found = ran["runs"][0]["metrics"]
    told = json.loads(python(copy, "-c", USES))
    assert found["spread.rtt_ms"] == (max(told["times"]) - min(told["times"])) / 1e6
    assert found["spread.rtt_ms"] > found["spread.p90_ms"] > told["any percentile"] == 0
    assert list(found).index("spread.rtt_ms") == list(found).index("answered.p95_ms") + 1, "in the order of the list"
    assert told["heading"] == "RTT spread (ms)"
    assert "| `spread.rtt_ms` | ms |" in told["metrics"]
    assert told["chosen"] == ["rtt", "rtt_ticks"]
    (data,) = told["chart"]["datasets"].values()
    assert sorted(row["rtt_ms"] for row in data) == pytest.approx(sorted(time / 1e6 for time in told["times"]))
    assert "rtt_ticks" in told["python"]


def test_an_experiment_is_in_the_catalogue_at_its_position(copy: Path) -> None:
    listed = [row["name"] for row in json.loads(python(copy, "-m", "bufferscope", "list", "--json"))]
    assert listed.index("rfc8290-sparse") == listed.index("mininet-mitigations") + 1
    (expectation,) = json.loads(python(copy, "-m", "bufferscope", "run", "rfc8290-sparse", "--json"))["expectations"]
    assert (expectation["metric"], expectation["verdict"]) == ("rtt.p95_ms", "reproduced")


NPING = """
Starting Nping 0.7.93 ( https://nmap.org/nping ) at 2026-01-31 12:00 UTC
SENT (0.0300s) ICMP [192.0.2.1 > 192.0.2.2 Echo request (type=8/code=0) id=7 seq=1] IP [ttl=64 id=1 iplen=28 ]
RCVD (0.0500s) ICMP [192.0.2.2 > 192.0.2.1 Echo reply (type=0/code=0) id=7 seq=1] IP [ttl=64 id=2 iplen=28 ]
SENT (1.0300s) ICMP [192.0.2.1 > 192.0.2.2 Echo request (type=8/code=0) id=7 seq=2] IP [ttl=64 id=3 iplen=28 ]
SENT (2.0300s) ICMP [192.0.2.1 > 192.0.2.2 Echo request (type=8/code=0) id=7 seq=3] IP [ttl=64 id=4 iplen=28 ]
RCVD (2.0700s) ICMP [192.0.2.2 > 192.0.2.1 Echo reply (type=0/code=0) id=7 seq=3] IP [ttl=64 id=5 iplen=28 ]
"""


def test_an_importer_is_chosen_by_the_content_and_by_its_name(copy: Path) -> None:
    (copy / "evening.txt").write_text(NPING, encoding="utf-8")
    for arguments in [(), ("--as", "nping")]:
        told = json.loads(python(copy, "-m", "bufferscope", "import", "evening.txt", "--json", *arguments))
        found = told["runs"][0]["metrics"]
        # Round trips of 20 and 40 ms, and one lost probe of three.
        assert (found["rtt.mean_ms"], found["rtt.max_ms"], found["rtt.lost"]) == (30, 40, 1)
    assert "nping" in python(copy, "-m", "bufferscope", "import", "--help")
    formats = json.loads(python(copy, "-m", "bufferscope", "list", "--formats", "--json"))["formats"]
    assert "nping" in [row["name"] for row in formats]


def test_a_program_is_listed_with_its_package(copy: Path) -> None:
    shown = python(copy, "-c", "from bufferscope.base.programs import packages; print(*packages(['nping']))")
    assert shown.split() == ["nmap"]
