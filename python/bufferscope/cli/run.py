"""`bufferscope run`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bufferscope.cli import options

if TYPE_CHECKING:
    from bufferscope.result import Result


def run(
    experiment: options.ExperimentName,
    engine: options.Engine = "sim",
    kernel: options.Kernel = None,
    out: options.Out = Path("results"),
    overrides: options.Set = None,
    seed: options.Seed = 1,
    repeat: options.Repeat = 1,
    jobs: options.Jobs = None,
    reuse: options.Reuse = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Run one experiment and show what was measured beside what its document says.

    Every point of the experiment's sweep is run with every seed, and stored as a directory of Parquet tables.

    [bold]Examples[/bold]

      bufferscope run ucas-queue-sizes

      bufferscope run ucas-reproduce --set link.bottleneck.queue.limit=20p

      bufferscope run ucas-reproduce --set traffic.bulk.congestion=cubic --repeat 5

      bufferscope run ucas-reproduce --engine guest --kernel 6.12

      bufferscope run my-lab.toml --json | jq '.runs[].metrics["rtt.p95_ms"]'
    """
    from bufferscope.cli.carrying import carry_out
    from bufferscope.cli.interruption import at_once
    from bufferscope.engines import engines

    chosen = engines(engine, kernel=kernel)
    result = carry_out([experiment], chosen, out, overrides or (), seed, repeat, jobs, quiet or json, reuse)[0]
    at_once("computing the metrics", lambda: _print(result, json, quiet), f"the runs are in {out}/")
    if strict:
        insist([result])


def insist(results: list["Result"]) -> None:
    """Exit with 1 if an expectation of any result is not reproduced."""
    from bufferscope.expectations import Verdict

    if any(e.verdict is Verdict.NOT_REPRODUCED for result in results for e in result.expectations):
        raise typer.Exit(1)


def _print(result: "Result", json: bool, quiet: bool) -> None:
    if json:
        from bufferscope.cli.documents import print_document, result_document

        print_document(result_document(result))
    elif not quiet:
        from bufferscope.cli.tables import print_expectations, print_runs, print_warnings

        print_runs(result)
        print_expectations([result])
        print_warnings([result])
        print(f"Stored in {result.runs[0].path.parent}/")
