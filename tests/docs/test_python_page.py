"""The page `docs/python.md` works as it stands: its blocks, run in order as one program, in an empty directory."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program() -> str:
    """The page's code with everything else blanked out, so that a traceback shows the page's own lines."""
    text = PAGE.read_text()
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block.group(1).splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(program(), str(PAGE), "exec"), {"__name__": "__main__"})
    charts = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert charts == {"queue.svg", "rtt.html", "sizes.svg"}
    assert all((tmp_path / chart).stat().st_size > 1000 for chart in charts)
