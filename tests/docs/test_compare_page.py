"""The page `docs/compare.md` works as it stands: its file, its commands with what they print, and its Python."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pages
import pytest
from laboratory import Answer

PAGE = pages.DOCS / "compare.md"


def test_the_page_works(cli: Callable[..., Answer], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    python: dict[str, object] = {"__name__": "__main__"}
    printed: dict[pages.Block, str] = {}
    for block in pages.blocks(PAGE):
        if block.language == "toml":
            (tmp_path / "uplink.toml").write_text(block.text)
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), python)
            capfd.readouterr()
        elif block.language == "console":
            lines = [line for line in block.text.splitlines() if line.startswith("$ ")]
            printed[block] = "".join(f"{line}\n{output(cli, line[2:], tmp_path)}" for line in lines)
    assert len(printed) == 5
    pages.hold(PAGE, printed)


def output(cli: Callable[..., Answer], command: str, directory: Path) -> str:
    """What a command prints."""
    program, *arguments = shlex.split(command)
    if program == "head":
        return "\n".join((directory / arguments[-1]).read_text().splitlines()[:2])
    assert program == "bufferscope"
    answer = cli(*arguments)
    assert answer.status == 0, command
    return answer.out
