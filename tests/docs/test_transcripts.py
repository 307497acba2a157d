"""Pages with instructions work as they are: their files, their Python, and their commands with their output.

A `toml` block whose first line is `# NAME.toml` is a file. A `python` block is run; a `text` block shows what the one
before it printed. A `console` block is run if output follows its commands (`$ ...`); one without is only an example.
"""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pages
import pytest
from clusters import cluster
from laboratory import Answer

WORKED = (
    "cluster",
    "compare",
    "formats",
    "getting-started",
    "lab-report",
    "populations",
    "size-a-buffer",
    "step",
    "sweeps",
    "which-queue",
)
PROMPT = "$ "
SCHEDULER = "tcp://node1:8786"
"""The scheduler named in the pages; a real one takes its place."""

Cli = Callable[..., Answer]


@pytest.mark.parametrize("name", WORKED)
def test_the_page_works(name: str, cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = pages.DOCS / f"{name}.md"
    (tmp_path / "docs").symlink_to(pages.DOCS)  # as in a clone, for the examples
    python: dict[str, object] = {"__name__": "__main__"}
    printed: dict[pages.Block, str] = {}
    said = ""
    for block in pages.blocks(page):
        title, _, _ = block.text.partition("\n")
        if block.language == "toml" and title.endswith(".toml"):
            (tmp_path / title.removeprefix("# ")).write_text(block.text)
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), python)
            said = capfd.readouterr().out
        elif block.language == "text":
            printed[block] = said
        elif block.language == "console" and (steps := list(commands(block.text))) and has_output(block.text):
            with scheduler(block.text, tmp_path) as address:
                outputs = [output(cli, step.replace(SCHEDULER, address), tmp_path) for step in steps]
            shown = zip(steps, outputs, strict=True)
            printed[block] = "\n".join(f"{PROMPT}{step}\n{text}".strip() for step, text in shown)
    assert printed
    pages.hold(page, printed)


@contextmanager
def scheduler(block: str, directory: Path) -> Iterator[str]:
    """The address of a real scheduler with a worker, to replace the pages' address in a block."""
    if SCHEDULER not in block:
        yield SCHEDULER
        return
    with cluster(directory, [""]) as started:
        yield started.address


def commands(block: str) -> Iterator[str]:
    """A block's commands; a command goes on where its line ends with a backslash."""
    whole = ""
    for line in block.splitlines():
        if whole or line.startswith(PROMPT):
            whole += line.removeprefix(PROMPT) if not whole else f"\n{line}"
            if not whole.endswith("\\"):
                yield whole
                whole = ""


def has_output(block: str) -> bool:
    """Whether anything but commands stands in a block."""
    for command in commands(block):
        block = block.replace(PROMPT + command, "", 1)
    return bool(block.strip())


def output(cli: Cli, command: str, directory: Path) -> str:
    """The output of a command."""
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    if program == "head":
        return "\n".join((directory / arguments[-1]).read_text().splitlines()[:2])
    assert program == "bufferscope"
    answer = cli(*arguments)
    assert answer.status == 0, f"{command}: {answer.err}"
    return answer.out.strip("\n")
