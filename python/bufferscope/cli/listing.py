"""The runs in a directory, one table per experiment."""

from collections.abc import Sequence
from typing import Literal

from rich.text import Text

from bufferscope.cli.tables import point_name
from bufferscope.cli.terminal import console, plain_table
from bufferscope.results.variation import Variation
from bufferscope.store.run import Run

GAP = 3
"""The space between two columns of a table."""


def print_listing(runs: Sequence[Run]) -> None:
    """One row per run: what distinguishes it, engine, seed, when it was made, and where it is."""
    for experiment in dict.fromkeys(run.experiment for run in runs):
        _print_experiment([run for run in runs if run.experiment == experiment])


def _print_experiment(runs: Sequence[Run]) -> None:
    variation = Variation(runs)
    paths = [key for key in variation.keys if key not in ("engine", "kernel")]
    headings = [*(paths or ["Point"]), "Engine", "Seed", "Started", "Run"]
    rows = []
    for run, values in zip(runs, variation.values, strict=True):
        what = [values.get(path, "") for path in paths] if paths else [point_name(run)]
        engine = f"{run.engine} {values.get('kernel', '')}".strip()
        started = str(run.meta["started"])[:16].replace("T", " ")
        rows.append([*what, engine, str(run.seed), started, str(run.path)])
    _print_table(f"{runs[0].experiment}: {runs[0].meta['title']}", headings, rows)


def _print_table(title: str, headings: list[str], rows: list[list[str]]) -> None:
    """Print a table of runs. If it is too wide, their directory is printed below it, and keys break at their dots."""
    shown, table = console(), plain_table(title)
    if sum(max(map(len, column)) + GAP for column in zip(headings, *rows, strict=True)) > shown.width:
        headings = [heading.replace(".", ".\n") for heading in headings]
        shelves = {path.rpartition("/")[0] for *_, path in rows}
        if len(shelves) == 1:
            rows = [[*cells, path.rpartition("/")[2]] for *cells, path in rows]
            table.caption, table.caption_justify = Text(f"in {shelves.pop()}/"), "left"
    # A narrow table breaks the times before it breaks the names of runs.
    is_name = max(len(path) for *_, path in rows) <= shown.width // 2
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading == "Seed" else "left"
        table.add_column(Text(heading), justify=justify, overflow="fold", no_wrap=is_name and heading == "Run")
    for row in rows:
        table.add_row(*map(Text, row))
    shown.print(table)
