"""What the simulator measures for each statement of the documents, and the verdict on it.

Experiments that `bufferscope reproduce` runs in brief take minutes as a whole. They run in brief here, too, and get the
verdicts of the whole: that is what brief means. `make test-slow` also runs all of them whole.
"""

import os
import re
from pathlib import Path

import pytest

import bufferscope as bs
from bufferscope.engines import engines
from bufferscope.model.experiment import load
from bufferscope.results.verdicts import ExpectationResult
from bufferscope.running.brevity import BRIEF, Part
from bufferscope.running.plan import execute, plan

KNOWN = (Path(__file__).parents[1] / "snapshots" / "verdicts.txt").read_text(encoding="utf-8")
IS_WHOLE = "WHOLE_CATALOGUE" in os.environ
LONG = {"dark-smokeping", "dark-reaction-time", "lncc-surface"}
"""Half a minute and more even in brief (the first: three days of packets), which only `make test-slow` takes."""
NUMBER = re.compile(r": \S+, (?=[a-z ,]+$)", re.MULTILINE)
"""The measurement in a line."""


def lines(name: str, expectations: list[ExpectationResult]) -> str:
    """The statements of an experiment, one a line: metric, point, measurement and verdict."""
    found = [f"{name}\n"]
    for each in expectations:
        point = ", ".join(each.point.values()) or "-"
        number = "-" if each.measured is None else f"{each.measured:.6g}"
        found.append(f"  {each.expectation.metric} ({point}): {number}, {each.verdict.words}\n")
    return "".join(found)


def in_brief(name: str, part: Part, out: Path) -> list[ExpectationResult]:
    experiment = load(name)
    tasks = plan(experiment, engines("sim"), out, repeat=part.repeat, among=part.positions(experiment))
    return bs.Result(execute(tasks)).expectations


@pytest.mark.parametrize(
    "name", [name for name in bs.catalogue() if name != "congestion-controls" and (IS_WHOLE or name not in BRIEF)]
)
def test_the_statements_of_a_document_are_measured_as_before(name: str, tmp_path: Path) -> None:
    # If a change of the simulator or of a metric is meant, put the new lines into the file.
    assert lines(name, bs.run(name, out=tmp_path).expectations) in KNOWN


@pytest.mark.parametrize("name", [name for name in BRIEF if IS_WHOLE or name not in LONG])
def test_the_statements_of_a_document_have_the_same_verdicts_in_brief(name: str, tmp_path: Path) -> None:
    found = lines(name, in_brief(name, BRIEF[name], tmp_path))
    assert found.count("\n") > 1 or not load(name).expectations
    assert NUMBER.sub(": ", found) in NUMBER.sub(": ", KNOWN)
