"""`bufferscope explain`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options

if TYPE_CHECKING:
    from bufferscope.analysis.explanation import Explanation, Statement
    from bufferscope.store.run import Run

MOST_RUNS = 100
"""The most runs that one command explains."""


def explain(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Stored runs: a run's directory, an experiment's directory of runs, or a quoted pattern.",
            show_default=False,
        ),
    ],
    no_cures: Annotated[
        bool, typer.Option("--no-cures", help="Do not simulate cures; print only what the records show.")
    ] = False,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw",
            metavar="DIR",
            help="Draw the figures that the sentences name, one SVG each, in a directory for each run.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Explain runs: where the delay was, since when, whose packets waited, what limited the flows, and what would help.

    Each sentence names the figure that shows it, in brackets. If the records cannot answer, the output says "cannot \
tell". Cures (another queue, a right-sized limit, BQL, larger windows) are simulated with the run's own experiment and \
seed; these simulations are not stored. They take a few times as long as the run did; --no-cures leaves them out.

    [bold]Examples[/bold]

      bufferscope explain results/ucas-reproduce

      bufferscope explain results/ucas-reproduce/run-sim-s1-0f3a2b1c --no-cures

      bufferscope explain 'results/lab/*-guest-*' --draw shown

      bufferscope explain results/lab --json | jq -r '.explanations[] | .cause, .port'
    """
    from bufferscope.analysis.explanation import explain_run
    from bufferscope.cli.explanations import print_explanation
    from bufferscope.cli.interruption import at_once

    runs = _runs(what)
    explained = []
    for run in runs:
        found = at_once("explaining the run", partial(explain_run, run))
        if not no_cures:
            found = found.having(_cures(run, quiet or json))
        explained.append(found)
        if draw:
            _draw(run, found, draw / run.id)
        if not (json or quiet):
            print_explanation(run, found, many=len(runs) > 1)
    if json:
        from bufferscope.cli.documents import print_document

        print_document({"explanations": [_document(*each) for each in zip(runs, explained, strict=True)]})


def _runs(what: list[str]) -> "list[Run]":
    from bufferscope.store.finding import find_anywhere
    from bufferscope.studies.comparison.inputs import paths

    found = (run for text in what for path in paths(text) for run in find_anywhere(path))
    runs = list({run.path.resolve(): run for run in found}.values())
    if len(runs) > MOST_RUNS:
        raise InputError(f"found {len(runs)} runs; allowed: {MOST_RUNS} at a time; name some of them")
    return runs


def _document(run: "Run", found: "Explanation") -> dict[str, object]:
    origin = {"experiment": run.experiment, "engine": run.engine, "seed": run.seed, "point": run.point}
    return {**origin, "path": str(run.path), **found.document()}


def _cures(run: "Run", silent: bool) -> "list[Statement]":
    """What each cure gives; the simulations end at once on Ctrl-C."""
    from bufferscope.analysis.explanation.cures import cures
    from bufferscope.cli.interruption import CutShortError
    from bufferscope.cli.progress import steps

    try:
        with steps("Simulating what would help", silent=silent, announced=False) as step:
            return list(cures(run, step))
    except KeyboardInterrupt:
        raise CutShortError("interrupted while simulating the cures; nothing was stored") from None


def _draw(run: "Run", found: "Explanation", directory: Path) -> None:
    """Draw the figures of the statements; those without data in the records are left out."""
    from bufferscope.figures import NoDataError
    from bufferscope.figures.pictures import svg

    directory.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(each.figure for each in found.statements if each.figure):
        try:
            picture = svg(run.figures[name].to_dict())
        except NoDataError:
            continue
        (directory / f"{name}.svg").write_text(picture)
