"""The shared parts of the commands that make a page of the documentation from runs of two engines."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from bufferscope.base.errors import EngineError, InputError
from bufferscope.cli.progress import shown
from bufferscope.running.job import Task
from bufferscope.running.plan import Interrupted, execute
from bufferscope.store.run import Run

DOCS = Path(__file__).parents[2] / "docs"


def parser(target: str, about: str | None) -> argparse.ArgumentParser:
    """The arguments of all these commands; `about` is the module's docstring."""
    found = argparse.ArgumentParser(prog=f"make {target}", description=(about or "").partition("\n")[0])
    found.add_argument("--out", type=Path, default=Path("results"), help="where runs are kept (default: results/)")
    found.add_argument("--jobs", type=int, help="runs at the same time (default: as many as there are processors)")
    found.add_argument("--engine", default="sim", help="the engine to judge (default: sim)")
    found.add_argument("--reference", default="guest", help="the engine that it is compared with (default: guest)")
    return found


def add_changes(options: argparse.ArgumentParser, what: str) -> None:
    """Add `--only` and `--set`: a part of the runs, perhaps with other settings."""
    options.add_argument("--only", default="", help=f"{what} with this in their name")
    options.add_argument(
        "--set", action="append", default=[], dest="settings", metavar="KEY=VALUE", help="with --only: change a setting"
    )


def parsed(options: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments, if they fit together."""
    chosen = options.parse_args(arguments)
    if chosen.settings and not chosen.only:
        options.error("--set needs --only: the page has the scenarios as they are")
    return chosen


def carried_out(command: Callable[[], int]) -> int:
    """The command's exit status. If it is interrupted or fails, the reason is printed."""
    try:
        return command()
    except Interrupted as interruption:
        print(f"{interruption}; the same command continues from there", file=sys.stderr)
        return 130
    except (EngineError, InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def runs_of(tasks: Sequence[Task], jobs: int | None) -> dict[Task, Run]:
    """The runs of these tasks, with progress."""
    with shown(tasks, silent=False) as watcher:
        return dict(zip(tasks, execute(tasks, jobs=jobs, watcher=watcher), strict=True))


def write(page: Path, text: str) -> None:
    """Write the page and print its path."""
    page.write_text(text, encoding="utf-8")
    print(f"Written: {page}", file=sys.stderr)


def template(name: str) -> Template:
    """A template of this directory."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(name)
