"""`bufferscope compare`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.cli import options


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RUNS...",
            help="Stored runs: a run's directory, an experiment's directory of runs, results/ itself, or a quoted "
            "pattern. NAME= gives them a name; without it, they are named by what differs between them.",
            show_default=False,
        ),
    ],
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME", help="A name for each of RUNS, in the same order."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="NAME",
            help="What all others are compared with. Default: the first that is named; of a directory or a "
            "pattern, the experiment without overrides, or the first point of its file.",
            show_default=False,
        ),
    ] = None,
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare stored runs: what changed, by how much, and whether chance explains it.

    Runs that differ in a setting, the engine, the kernel or the experiment belong to different arms. Points with the
    same swept values are compared with one another. Every arm is compared with the first: the difference of the \
means and, if there are repetitions, its 95 % confidence interval. The page (comparison/index.html) shows all arms \
in the same charts; with --json or --quiet it is written only if --report says where.

    [bold]Examples[/bold]

      bufferscope compare results/ucas-reproduce

      bufferscope compare 'tail drop=results/lab/run-sim-s1-0f3a2b1c' CoDel=results/lab/run-sim-s1-7d2e9a40

      bufferscope compare before=old/ucas-reproduce after=results/ucas-reproduce --report before-and-after

      bufferscope compare 'results/lab/*-s1-*' --baseline pfifo --json | jq '.points[].differences[]'
    """
    from bufferscope.cli.differences import print_comparison
    from bufferscope.cli.documents import comparison_document
    from bufferscope.cli.pages import present
    from bufferscope.report.comparison import build
    from bufferscope.studies.comparison.comparing import Comparison
    from bufferscope.studies.comparison.inputs import named, written

    comparison = Comparison(named([written(text) for text in what], labels), baseline)
    directory = options.page(report, no_report, json or quiet, Path("comparison"), stills=stills)
    present(
        json=json,
        quiet=quiet,
        text=lambda: print_comparison(comparison),
        document=lambda: comparison_document(comparison),
        directory=directory,
        write=lambda path, step: build(comparison, path, step, stills=stills),
    )
