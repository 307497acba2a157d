"""The output of `measure`, and what `show` prints of a live measurement."""

from pathlib import Path

from rich.text import Text

from bufferscope.analysis import live as words
from bufferscope.analysis.live import TextTable
from bufferscope.cli.saying import say
from bufferscope.cli.terminal import console, plain_table
from bufferscope.store.live import live_of
from bufferscope.store.run import Run

PICTURE = "live"


def document(run: Run) -> dict[str, object]:
    """A live measurement for `--json`."""
    from bufferscope.cli.documents import run_document

    live = run.meta["summary"]["live"]
    return {
        "experiment": run.experiment,
        "host": live["host"],
        "complete": live["complete"],
        "reason": live["reason"],
        "runs": [run_document(run)],
        "verdict": live["verdict"],
        **({"monitor": live["monitor"], "episodes": live["episodes"]} if "monitor" in live else {}),
    }


def picture(page: Path, run: Run) -> Path:
    """The picture to send to others, beside the page of a measurement."""
    return page.parent.resolve() / "figures" / f"{run.experiment}-{PICTURE}.svg"


def print_measured(run: Run) -> None:
    """The five sentences, the warnings, and where everything is."""
    from bufferscope.report.live import next_command

    print_sentences(run)
    for sentence in words.responsiveness(live_of(run.meta["summary"])):
        console().print(Text(sentence))
    for warning in run.warnings:
        console().print(Text(f"Warning: {warning}"))
    say(f"Stored in {run.path}/")
    say(f"Next: {next_command(run)}")


def print_sentences(run: Run) -> None:
    """The verdict in sentences, one to a line."""
    for sentence in run.meta["summary"]["live"]["verdict"]["sentences"]:
        console().print(Text(sentence))
    console().print()


def print_live(run: Run) -> None:
    """What `show` prints of a live measurement before its metrics: sentences, numbers, places and hops."""
    live = run.meta["summary"]["live"]
    verdict = live["verdict"]
    print_sentences(run)
    print_table(words.episodes(live, run.meta["started"]))
    for table in (
        words.numbers(verdict),
        words.directions(verdict),
        words.worst_cases(verdict),
        words.locations(verdict),
    ):
        print_table(table)
    for phase in verdict["phases"]:
        print_table(words.ladder(phase))
    for sentence in words.responsiveness(live):
        console().print(Text(sentence))
    for sentence in words.not_reported(live):
        console().print(Text(sentence))


def print_table(table: TextTable) -> None:
    """A table of texts, unless it is empty."""
    if not table.rows:
        return
    shown = plain_table(table.title)
    for column in table.columns:
        shown.add_column(column, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    console().print(shown)
