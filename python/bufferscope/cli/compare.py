"""`bufferscope compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.cli import options

if TYPE_CHECKING:
    from bufferscope.comparison import Comparison


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RUNS...",
            help="Stored runs: a run's directory, an experiment's directory of runs, results/ itself, or a pattern in "
            "quotes. NAME= chooses what they are called; otherwise they are called by what they differ in.",
            show_default=False,
        ),
    ],
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME", help="What to call each of RUNS, one for each, in their order."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="NAME",
            help="The side that all others are held against. Default: the first.",
            show_default=False,
        ),
    ] = None,
    report: options.Report = None,
    no_report: options.NoReport = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare stored runs: what changed, by how much, and whether chance explains it.

    What the runs differ in makes the sides: settings, engine, kernel, experiment. Points with the same swept values are
    compared with one another. Every side is held against the first: the difference of the means, and with \
repetitions its 95 % confidence interval. The page (comparison/index.html) shows all sides in the same charts; with \
--json or --quiet it is written only if --report says where.

    [bold]Examples[/bold]

      bufferscope compare results/ucas-reproduce

      bufferscope compare 'tail drop=results/lab/run-sim-s1-0f3a2b1c' CoDel=results/lab/run-sim-s1-7d2e9a40

      bufferscope compare before=old/ucas-reproduce after=results/ucas-reproduce --report before-and-after

      bufferscope compare 'results/lab/*-s1-*' --baseline pfifo --json | jq '.points[].differences[]'
    """
    from bufferscope.cli.pages import page
    from bufferscope.comparison.comparing import Comparison
    from bufferscope.comparison.inputs import named, written
    from bufferscope.comparison.page import build

    comparison = Comparison(named([written(text) for text in what], labels), baseline)
    directory = options.page(report, no_report, json or quiet, Path("comparison"))
    drawn = directory and page(directory, lambda path, step: build(comparison, path, step), silent=json or quiet)
    _print(comparison, drawn, json, quiet)


def _print(comparison: "Comparison", page: Path | None, json: bool, quiet: bool) -> None:
    if json:
        from bufferscope.cli.documents import comparison_document, print_document

        print_document(comparison_document(comparison) | ({"report": str(page)} if page else {}))
    elif not quiet:
        from bufferscope.cli.differences import print_comparison

        print_comparison(comparison)
        if page:
            print(f"The page: {page.resolve()}")
