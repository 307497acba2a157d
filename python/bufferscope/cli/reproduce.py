"""`bufferscope reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.cli import options
from bufferscope.cli.completion import complete_experiment
from bufferscope.cli.run import insist


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Experiments to run. Default: the whole catalogue.",
            show_default=False,
            autocompletion=complete_experiment,
        ),
    ] = None,
    engine: options.Engine = "sim",
    kernel: options.Kernel = None,
    out: options.Out = Path("results"),
    report: Annotated[
        Path, typer.Option("--report", metavar="DIR", help="Where the page is written.", file_okay=False)
    ] = Path("report"),
    seed: options.Seed = 1,
    repeat: options.RepeatAsFiled = None,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    reuse: options.Reuse = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Run the experiments of the catalogue, write a page with every figure, and report what was reproduced.

    [bold]Examples[/bold]

      bufferscope reproduce

      bufferscope reproduce ucas-mitigate mininet-buffer-size --repeat 10

      bufferscope reproduce --strict --quiet && echo "all as the documents say"
    """
    from bufferscope.cli.carrying import carry_out, read
    from bufferscope.cli.pages import page
    from bufferscope.engines import engines
    from bufferscope.experiment import catalogue
    from bufferscope.report import build

    chosen = engines(engine, kernel=kernel)
    results = carry_out(read(names or catalogue()), chosen, out, seed, repeat, jobs, quiet or json, reuse, cluster)
    drawn = page(
        report, lambda path, step: build(results, path, step), silent=quiet or json, left=f"the runs are in {out}/"
    )
    if json:
        from bufferscope.cli.documents import print_document, result_document

        print_document({"report": str(drawn), "experiments": [result_document(result) for result in results]})
    elif not quiet:
        from bufferscope.cli.tables import print_expectations, print_warnings

        print_expectations(results)
        print_warnings(results)
        print(f"The page: {drawn.resolve()}")
    if strict:
        insist(results)
