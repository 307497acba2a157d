"""`bufferscope run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bufferscope.cli import options
from bufferscope.cli.saying import say

if TYPE_CHECKING:
    from bufferscope.results.result import Result


def run(
    experiment: options.ExperimentName,
    engine: options.Engines = None,
    kernel: options.Kernel = None,
    out: options.Out = Path("results"),
    overrides: options.Set = None,
    only: options.Only = None,
    seed: options.Seed = 1,
    repeat: options.RepeatAsFiled = None,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    reuse: options.Reuse = False,
    capture: options.Capture = False,
    layout: options.Layout = "auto",
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    strict: options.Strict = False,
) -> None:
    """Run one experiment and show the measurements beside what its document says.

    Every point of the experiment's sweep is run with every seed. --set changes a key of the file; \
--set sweep.KEY=[...] sweeps a key, in addition to the other swept keys of the file, and replaces the file's values \
for this key; and --set KEY=VALUE of a swept key ends its sweep. A run is stored as a directory of Parquet tables; \
200 or more short runs are stored together (--layout). The page report/EXPERIMENT/index.html shows the figures that \
the experiment names, or those that suit its traffic. With --json or --quiet, it is written only if --report is given. \
No page is written for more than 500 points.

    [bold]Examples[/bold]

      bufferscope run ucas-queue-sizes

      bufferscope run ucas-reproduce --set link.bottleneck.queue.limit=20p

      bufferscope run ucas-reproduce --set traffic.bulk.congestion=cubic --repeat 5

      bufferscope run ucas-queue-sizes --only link.bottleneck.queue.limit=20p

      bufferscope run ucas-reproduce --set 'sweep.link.bottleneck.queue.limit=["20p", "100p", "500p"]'

      bufferscope run ucas-reproduce --engine guest --kernel 6.12

      bufferscope run ucas-reproduce --engine guest --capture

      bufferscope run my-lab.toml --json | jq '.runs[].metrics["rtt.p95_ms"]'
    """
    from bufferscope.cli.execute import execute, measure, read
    from bufferscope.cli.pages import is_drawable, present
    from bufferscope.engines import default, engines
    from bufferscope.report import build

    chosen = engines(engine or default().name, kernel=kernel, capture=capture)
    silent = quiet or json
    options.page(report, no_report, silent, Path(), stills=stills)  # refuse conflicting options before anything runs
    loaded = read([experiment], overrides)
    (result,) = execute(loaded, chosen, out, seed, repeat, jobs, silent, reuse, cluster, layout, only or ())
    directory = options.page(report, no_report, silent, Path("report") / result.experiment)
    left = f"the runs are in {out}/"
    if not silent:
        measure(result, left)
    if directory and not report and not is_drawable(result):
        directory = None
    present(
        json=json,
        quiet=quiet,
        text=lambda: _print(result),
        document=lambda: _document(result),
        directory=directory,
        write=lambda path, step: build([result], path, step, stills=stills),
        left=left,
    )
    if strict:
        insist([result])


def insist(results: list["Result"]) -> None:
    """Exit with 1 if an expectation of any result is not reproduced, or could not be judged without its metric."""
    from bufferscope.results.verdicts import Verdict

    evaluated = [evaluated for result in results for evaluated in result.expectations]
    if any(each.unmeasured or each.verdict is Verdict.NOT_REPRODUCED for each in evaluated):
        raise typer.Exit(1)


def _document(result: "Result") -> dict[str, Any]:
    from bufferscope.cli.documents import result_document

    return result_document(result)


def _print(result: "Result") -> None:
    from bufferscope.cli.overview import print_findings, print_runs
    from bufferscope.cli.tables import print_expectations, print_warnings

    print_runs(result)
    print_findings(result)
    print_expectations([result])
    print_warnings([result])
    say(f"Stored in {result.runs[0].experiment_dir}/")
