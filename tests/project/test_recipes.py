"""The recipes of CONTRIBUTING.md, followed in a copy: what they name is all that has to be touched.

A recipe here has the new files and the new lines. Its section must name each of their paths, or the directory of a new
file, and no other part of the code; tests, documents and scripts that it names are for people.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from laboratory import SMALL

from bufferscope import _core

ROOT = Path(__file__).parents[2]
CODE = ("python/", "crates/")


@dataclass(frozen=True)
class Line:
    """A line that is added to a list, after one that the list has."""

    after: str
    added: str


@dataclass(frozen=True)
class Recipe:
    """What a section of CONTRIBUTING.md asks for, with an example."""

    heading: str
    files: Mapping[str, str]
    """The text of each new file."""
    lines: Mapping[str, Line] = field(default_factory=dict)
    """The line that each list gets."""

    def follow(self, root: Path) -> None:
        """Do it in a copy of the repository."""
        for path, text in self.files.items():
            assert not (root / path).exists(), path
            (root / path).write_text(text, encoding="utf-8")
        for path, line in self.lines.items():
            text = (root / path).read_text(encoding="utf-8")
            assert text.count(line.after) == 1, (path, line.after)
            (root / path).write_text(text.replace(line.after, line.after + line.added), encoding="utf-8")


METRIC = Recipe(
    "A metric",
    {
        "python/bufferscope/metrics/spread.py": '''\
"""How far round-trip times are apart."""

from __future__ import annotations

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.long import ordered


@query(
    Metric(
        "spread.rtt_ms",
        "ms",
        "The longest minus the shortest round-trip time of the answered probes.",
        "probes: rtt_ns",
        lambda: (pl.col("longest") - pl.col("shortest"), 1e6),
        heading="RTT spread (ms)",
    ),
    Metric(
        "spread.p<N>_ms",
        "ms",
        "Percentile of the round-trip time above the shortest one.",
        "probes: rtt_ns",
        lambda percent: ordered(percent, 1e6),
        percentiles=(90,),
    ),
    reads={"probes": ("sent_ns", "rtt_ns")},
)
def of_answered(batch: Batch) -> pl.LazyFrame:
    """The answered probes of each run."""
    rtt = pl.col("rtt_ns")
    answered = batch.rows("probes", "rtt_ns", time="sent_ns").drop_nulls("rtt_ns")
    return answered.group_by("run").agg(longest=rtt.max(), shortest=rtt.min(), ordered=(rtt - rtt.min()).sort())
'''
    },
    {"python/bufferscope/metrics/declared.py": Line('    "rtt",\n', '    "spread",\n')},
)
FIGURE = Recipe(
    "A figure",
    {
        "python/bufferscope/figures/charts/rtt_ticks.py": '''\
"""Figure: every round-trip time as a tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import ResultRecords, pooled
from bufferscope.model.network import probers

if TYPE_CHECKING:
    from bufferscope.figures.chart import LayerFigure


@figure(needs=("probes",), fits=probers)
def rtt_ticks(result: ResultRecords) -> LayerFigure:
    """A tick for each round-trip time in ms, in the colour of its point."""
    frame = pooled(result, lambda run: run.probes.select(rtt_ms=pl.col("rtt_ns") / 1e6)).drop_nulls()
    x = alt.X("rtt_ms:Q", title="round-trip time (ms)")
    ticks = alt.Chart(frame).mark_tick().encode(x=x, color=axes.point_color(result))
    return parts.framed([ticks], "Round-trip times", "", f"{frame.height} ticks.")
'''
    },
    {"python/bufferscope/model/figure_names.py": Line('    "rtt",\n', '    "rtt_ticks",\n')},
)
RECIPES = (METRIC, FIGURE)


def section(heading: str) -> str:
    """The text of a recipe."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.heading)
def test_a_recipe_names_the_places_that_have_to_be_touched_and_no_others(recipe: Recipe) -> None:
    named = {path for path in re.findall(r"`([\w./-]+)`", section(recipe.heading)) if path.startswith(CODE)}
    edited = set(recipe.lines)
    directories = {str(Path(path).parent) for path in recipe.files}
    assert named == edited | directories
    assert all((ROOT / path).exists() for path in named)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which all recipes have been followed."""
    root = tmp_path_factory.mktemp("copy")
    left_out = shutil.ignore_patterns("*.so", "bin", "explorer", "__pycache__")
    shutil.copytree(ROOT / "python", root / "python", ignore=left_out)
    core = Path(str(_core.__file__)).resolve()
    (root / "python" / "bufferscope" / Path(str(_core.__file__)).name).symlink_to(core)
    for recipe in RECIPES:
        recipe.follow(root)
    return root


def python(root: Path, *arguments: str) -> str:
    """What a program prints that uses the package of the copy."""
    paths = os.pathsep.join([str(root / "python"), str(ROOT / "scripts" / "reference")])
    environment = os.environ | {"PYTHONPATH": paths, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def test_what_the_recipes_add_works_everywhere(copy: Path) -> None:
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
