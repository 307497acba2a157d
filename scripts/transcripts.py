"""Runs the commands of the documentation and holds what they print against the page; `--write` puts it there.

A `console` block whose commands (`$ ...`) are followed by output is a transcript. The transcripts of a page are run in
order in one empty directory, as a reader would. In the output a line `...` stands for any number of lines. Blocks
without output are only examples of commands, and are not run.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "$ "
ELLIPSIS = "..."
COLUMNS = "110"
"""The width of the tables, as on a terminal of that width."""
LONGEST_S = 120


@dataclass(frozen=True)
class Step:
    """A command of a transcript, and what the page says it prints."""

    command: str
    output: tuple[str, ...]


def pages() -> list[Path]:
    """The pages that have a transcript."""
    return [page for page in sorted(DOCS.glob("*.md")) if any(transcripts(page.read_text()))]


def transcripts(text: str) -> Iterator[re.Match[str]]:
    """The `console` blocks with output."""
    for block in BLOCK.finditer(text):
        if any(step.output for step in steps(block.group(1))):
            yield block


def steps(block: str) -> list[Step]:
    """A block's commands; a command goes on where its line ends with a backslash."""
    found: list[tuple[str, list[str]]] = []
    continued = False
    for line in block.splitlines():
        if continued:
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        elif line.startswith(PROMPT):
            found.append((line.removeprefix(PROMPT), []))
        elif found:
            found[-1][1].append(line)
        continued = (continued or line.startswith(PROMPT)) and line.endswith("\\")
    return [Step(command, _trimmed(output)) for command, output in found]


def agrees(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether the output is what the page says, `...` standing for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == ELLIPSIS else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def rehearse(page: Path) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Runs a page's transcripts: each step with what it prints, standard error left out."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "docs").symlink_to(DOCS)  # as in a clone, for the examples
        for block in transcripts(page.read_text()):
            for step in steps(block.group(1)):
                yield step, _run(step.command, Path(directory))


def _run(command: str, directory: Path) -> tuple[str, ...]:
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": COLUMNS, "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=directory, env=environment, capture_output=True, text=True, timeout=LONGEST_S
    )
    if done.returncode:
        raise SystemExit(f"{command}\nended with {done.returncode}: {done.stderr}")
    return _trimmed(done.stdout.replace(f"{directory}/", "").splitlines())


def _trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    """Without blanks at the ends of lines, and without empty lines at the beginning and the end."""
    return tuple("\n".join(line.rstrip() for line in lines).strip("\n").splitlines())


def _rewritten(text: str, printed: Iterator[tuple[Step, tuple[str, ...]]]) -> str:
    """The page with what was printed; output that agrees already, with its `...`, stays."""

    def block(match: re.Match[str]) -> str:
        lines = []
        for step in steps(match.group(1)):
            _, output = next(printed)
            lines += [PROMPT + step.command, *(step.output if agrees(step.output, output) else output)]
        return "```console\n" + "\n".join(lines) + "\n```"

    blocks = {match.start() for match in transcripts(text)}
    return BLOCK.sub(lambda match: block(match) if match.start() in blocks else match.group(0), text)


def main() -> int:
    """Check every page, or write what is printed now into it."""
    differing = 0
    for page in pages():
        printed = list(rehearse(page))
        if "--write" in sys.argv[1:]:
            page.write_text(_rewritten(page.read_text(), iter(printed)))
            continue
        for step, output in printed:
            if not agrees(step.output, output):
                differing += 1
                print(f"{page.name}: $ {step.command}\nprints\n" + "\n".join(output), file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
