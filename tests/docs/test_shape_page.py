"""The numbers of docs/shape-your-line.md are those of the runs whose commands it shows."""

import re
from pathlib import Path

import pytest

import bufferscope as bs

DOCS = Path(__file__).parents[2] / "docs"
METRICS = {
    "median (ms)": "rtt.p50_ms",
    "p95 (ms)": "rtt.p95_ms",
    "goodput (Mbit/s)": "goodput.total_mbit",
    "download (Mbit/s)": "goodput.download_mbit",
    "upload (Mbit/s)": "goodput.upload_mbit",
    "call (MOS)": "voip.call.mos",
}
COMMAND = re.compile(r"^\$ bufferscope run docs/(examples/shape-\w+\.toml) --no-report$", re.MULTILINE)


def tables() -> dict[str, list[dict[str, str]]]:
    """The rows of the first table behind each command, by the command's file."""
    _, *parts = COMMAND.split((DOCS / "shape-your-line.md").read_text(encoding="utf-8"))
    found = {}
    for file, text in zip(parts[::2], parts[1::2], strict=True):
        (table,) = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[:1]
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        found[file] = [dict(zip(head, row, strict=True)) for row in rows]
    return found


@pytest.mark.parametrize("file", sorted(path.name for path in (DOCS / "examples").glob("shape-*.toml")))
def test_a_table_has_the_numbers_of_its_runs(file: str, tmp_path: Path) -> None:
    rows = tables()[f"examples/{file}"]
    result = bs.run(DOCS / "examples" / file, out=tmp_path)
    assert len(rows) == len(result.runs)
    for row, run in zip(rows, result.runs, strict=True):
        label, *shown = row.values()
        assert label == ", ".join(run.point.values())
        measured = [run.metrics[METRICS[column]] for column in list(row)[1:]]
        assert [float(text) for text in shown] == pytest.approx(measured, rel=0.006), label
