"""The output of `explain`, for people."""

from rich.padding import Padding
from rich.text import Text

from bufferscope.analysis.explanation import Explanation, Statement
from bufferscope.analysis.explanation.statement import StatementKind
from bufferscope.cli.tables import point_name
from bufferscope.cli.terminal import console
from bufferscope.store.run import Run

HEADINGS: dict[tuple[StatementKind, ...], str] = {
    ("where", "layers", "since"): "Where the delay was",
    ("who", "window", "limit"): "Whose packets, and how many",
    ("sender", "losses"): "What each flow got",
    ("call", "game", "page", "video"): "What it means",
    ("advice",): "What to do",
    ("cure",): "What would help, tried on the simulator",
    ("unknown",): "What is not known",
}
"""The kinds of statements under each heading, in the order of printing."""


def print_explanation(run: Run, explanation: Explanation, *, many: bool) -> None:
    """The verdict, then the other statements under headings; each with its figure and with what it leaves open."""
    name = f"{run.experiment}, {point_name(run)}, {run.engine}, seed {run.seed}" if many else run.experiment
    console().print(Text(f"{name}: {explanation.verdict}", style="bold"))
    for kinds, heading in HEADINGS.items():
        statements = explanation.of(*kinds)
        if statements:
            console().print(Text(f"\n{heading}"))
            for statement in statements:
                console().print(Padding(_line(statement), (0, 0, 0, 2)))
    console().print()


def _line(statement: Statement) -> Text:
    line = Text(statement.sentence)
    if statement.figure:
        line.append(f" [{statement.figure}]", style="cyan")
    if statement.unknown:
        line.append(f" {statement.unknown}", style="dim")
    return line
