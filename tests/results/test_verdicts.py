"""What the simulator measures for each statement of the documents, and the verdict on it."""

from pathlib import Path

import pytest

import bufferscope as bs

KNOWN = Path(__file__).parents[1] / "snapshots" / "verdicts.txt"


def measured(name: str, out: Path) -> str:
    """The statements of an experiment, one a line: metric, point, measurement and verdict."""
    lines = [f"{name}\n"]
    for found in bs.run(name, out=out).expectations:
        point = ", ".join(found.point.values()) or "-"
        number = "-" if found.measured is None else f"{found.measured:.6g}"
        lines.append(f"  {found.expectation.metric} ({point}): {number}, {found.verdict.words}\n")
    return "".join(lines)


@pytest.mark.parametrize("name", [name for name in bs.catalogue() if name != "congestion-controls"])
def test_the_statements_of_a_document_are_measured_as_before(name: str, tmp_path: Path) -> None:
    # If a change of the simulator or of a metric is meant, put the new lines into the file.
    assert measured(name, tmp_path) in KNOWN.read_text(encoding="utf-8")
