"""The runs in a directory, one table per experiment."""

from collections.abc import Sequence

from rich.text import Text

from bufferscope.cli.tables import point_name
from bufferscope.cli.terminal import console, plain_table
from bufferscope.store.run import Run
from bufferscope.variation import Variation


def print_listing(runs: Sequence[Run]) -> None:
    """One row per run: what distinguishes it, engine, seed, when it was made, and where it is."""
    for experiment in dict.fromkeys(run.experiment for run in runs):
        _print_experiment([run for run in runs if run.experiment == experiment])


def _print_experiment(runs: Sequence[Run]) -> None:
    variation = Variation(runs)
    paths = [key for key in variation.keys if key not in ("engine", "kernel")]
    table = plain_table(f"{runs[0].experiment}: {runs[0].meta['title']}")
    for heading in paths or ["Point"]:
        table.add_column(Text(heading), overflow="fold")
    for heading in ("Engine", "Seed", "Started", "Run"):
        table.add_column(heading, justify="right" if heading == "Seed" else "left", overflow="fold")
    for run, values in zip(runs, variation.values, strict=True):
        what = [values.get(path, "") for path in paths] if paths else [point_name(run)]
        kernel = values.get("kernel", "")
        engine = f"{run.engine} {kernel}".strip()
        started = str(run.meta["started"])[:16].replace("T", " ")
        table.add_row(*map(Text, [*what, engine, str(run.seed), started, str(run.path)]))
    console().print(table)
