"""`bufferscope agree`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.cli import options
from bufferscope.cli.completion import complete_engine


def agree(
    experiment: options.ExperimentName,
    engine: options.Engine = "sim",
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="NAME",
            help="The engine that --engine is compared with. Default: guest, or host if only that is ready.",
            show_default=False,
            autocompletion=complete_engine,
        ),
    ] = None,
    kernel: options.Kernel = None,
    out: options.Out = Path("results"),
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    overrides: options.Set = None,
    only: options.Only = None,
    seed: options.Seed = 1,
    repeat: options.Repeat = 3,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    reuse: options.Reuse = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a tolerance is exceeded.")] = False,
) -> None:
    """Run an experiment on two engines and report how far apart the results are.

    For each metric it shows both means and their difference, whether chance explains the difference (it lies within \
its 95 % confidence interval, computed from the repetitions), and whether it is small enough not to matter (within the \
tolerance). The page agreement/index.html shows both engines' series in the same charts.

    [bold]Examples[/bold]

      bufferscope agree ucas-reproduce

      bufferscope agree ucas-reproduce --set traffic.bulk.congestion=cubic --repeat 5

      bufferscope agree ucas-queue-sizes --only link.bottleneck.queue.limit=100p

      bufferscope agree mininet-buffer-size --engine guest --reference host

      bufferscope agree my-lab.toml --reuse --json | jq '.points[].comparisons[] | select(.meets_aim == false)'
    """
    from bufferscope.cli.comparisons import print_agreement
    from bufferscope.cli.documents import agreement_document
    from bufferscope.cli.execute import execute, measure, read
    from bufferscope.cli.interruption import at_once
    from bufferscope.cli.pages import present
    from bufferscope.cli.tables import print_warnings
    from bufferscope.engines.pairing import pair
    from bufferscope.report import agreement as agreement_page
    from bufferscope.studies import agreement

    directory = options.page(report, no_report, False, Path("agreement"), stills=stills)
    chosen = pair(engine, reference, kernel, here=cluster is None)
    silent, left = quiet or json, f"the runs are in {out}/"
    loaded = read([experiment], overrides)
    (result,) = execute(loaded, chosen, out, seed, repeat, jobs, silent, reuse, cluster, wanted=only or ())
    if not silent:
        measure(result, left)
    compared = at_once("comparing the runs", lambda: agreement.compare(result), f"they are in {out}/")

    def text() -> None:
        print_agreement(compared)
        print_warnings([result])

    present(
        json=json,
        quiet=quiet,
        text=text,
        document=lambda: agreement_document(compared, result),
        directory=directory,
        write=lambda path, step: agreement_page.build(result, path, step, stills=stills),
        left=left,
    )
    if strict and compared.count(False):
        raise typer.Exit(1)
