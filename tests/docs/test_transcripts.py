"""What the documentation shows below a command is what the command prints."""

from pathlib import Path

import pytest
import transcripts
from transcripts import Step


def test_pages_have_transcripts() -> None:
    assert "getting-started.md" in {page.name for page in transcripts.pages()}


@pytest.mark.parametrize("page", transcripts.pages(), ids=lambda page: page.stem)
def test_a_command_prints_what_the_page_shows(page: Path) -> None:
    for step, printed in transcripts.rehearse(page):
        assert transcripts.agrees(step.output, printed), "`make transcripts` writes what it prints:\n" + "\n".join(
            [step.command, *printed]
        )


def test_a_line_of_dots_stands_for_any_lines() -> None:
    assert transcripts.agrees(["a", "...", "d"], ["a", "b", "c", "d"])
    assert transcripts.agrees(["a", "...", "d"], ["a", "d"])
    assert not transcripts.agrees(["a", "...", "d"], ["a", "b"])
    assert not transcripts.agrees(["a.c"], ["abc"])


def test_a_command_goes_on_behind_a_backslash() -> None:
    block = "$ first --a \\\n    --b\nits output\n\n$ second\n"
    assert transcripts.steps(block) == [Step("first --a \\\n    --b", ("its output",)), Step("second", ())]
