"""The page on the command line, from the program's own help."""

import os
import subprocess
import sys
from pathlib import Path

from bufferscope import cli
from bufferscope.cli.app import app
from writing import heading

PROGRAM = Path(sys.executable).with_name("bufferscope")
# As on a plain terminal of this width, whatever terminal this runs in.
ENVIRONMENT = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}


def page() -> str:
    """The whole page."""
    *_, details = (cli.__doc__ or "").partition("\n\n")
    sections = "".join(heading(2, f"bufferscope {' '.join(words)}") + _help(*words) for words in _commands())
    return f"# Command line\n\n{details.strip()}\n\n{_help()}{sections}".rstrip() + "\n"


def _commands() -> list[tuple[str, ...]]:
    """Every command by its words; the commands of groups come after the others."""
    alone = [(str(command.name),) for command in app.registered_commands]
    groups = [group.typer_instance for group in app.registered_groups]
    return alone + [
        (str(group.info.name), str(command.name)) for group in groups if group for command in group.registered_commands
    ]


def _help(*command: str) -> str:
    """What `--help` prints, as a block."""
    printed = subprocess.run(
        [PROGRAM, *command, "--help"], env=ENVIRONMENT, capture_output=True, text=True, check=True
    ).stdout
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n\n"
