"""The page `docs/python.md` works as it stands: its blocks, run in order as one program, in an empty directory."""

from pathlib import Path

import pages
import pytest

PAGE = pages.DOCS / "python.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    program: dict[str, object] = {"__name__": "__main__"}
    printed: dict[pages.Block, str] = {}
    said = ""
    for block in pages.blocks(PAGE):
        if block.language == "python":
            # As many lines before it as in the page, so that tracebacks have the page's line numbers.
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), program)
            said = capsys.readouterr().out
        elif block.language == "text":
            printed[block] = said
    pages.hold(PAGE, printed)
    charts = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert charts == {"queue.svg", "rtt.html", "sizes.svg"}
    assert all((tmp_path / chart).stat().st_size > 1000 for chart in charts)
