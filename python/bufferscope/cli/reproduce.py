"""`bufferscope reproduce`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.cli import options
from bufferscope.cli.completion import complete_experiment
from bufferscope.cli.run import insist

if TYPE_CHECKING:
    from bufferscope.result import Result


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
    out: options.Out = Path("results"),
    report: Annotated[
        Path, typer.Option("--report", metavar="DIR", help="Where the page is written.", file_okay=False)
    ] = Path("report"),
    seed: options.Seed = 1,
    repeat: options.Repeat = 1,
    jobs: options.Jobs = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Run the experiments of the catalogue, write a page with every figure, and say what was reproduced.

    [bold]Examples[/bold]

      bufferscope reproduce

      bufferscope reproduce ucas-mitigate mininet-buffer-size --repeat 10

      bufferscope reproduce --strict --quiet && echo "all as the documents say"
    """
    from bufferscope.cli.carrying import carry_out
    from bufferscope.experiment import catalogue

    results = carry_out(names or catalogue(), engine, out, (), seed, repeat, jobs, quiet or json)
    if not (quiet or json):
        print("Drawing the figures", file=sys.stderr, flush=True)
    page = _write_page(results, report)
    if json:
        from bufferscope.cli.documents import print_document, result_document

        print_document({"report": str(page), "experiments": [result_document(result) for result in results]})
    elif not quiet:
        from bufferscope.cli.tables import print_expectations, print_warnings

        print_expectations(results)
        print_warnings(results)
        print(f"The page: {page.resolve()}")
    if strict:
        insist(results)


def _write_page(results: "list[Result]", directory: Path) -> Path:
    from bufferscope import report
    from bufferscope.errors import InputError

    try:
        return report.build(results, directory)
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot write the report here: {error.strerror}") from None
