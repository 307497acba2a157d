"""`bufferscope choose`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.cli import options


def choose(
    experiment: options.ExperimentName,
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="NAME",
            help="The link whose queue is chosen; NAME.forward or NAME.reverse for one direction. Default: the one "
            "with the smallest rate on the path of the data.",
            show_default=False,
        ),
    ] = None,
    point: options.Point = None,
    engine: options.Engine = "sim",
    kernel: options.Kernel = None,
    out: options.Out = Path("results"),
    overrides: options.Set = None,
    seed: options.Seed = 1,
    repeat: options.Repeat = 3,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    reuse: options.Reuse = False,
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run an experiment with every queueing discipline at its bottleneck, and say which one to take and why.

    Tail drop is tried in a few sizes, from an eighth of the BDP to four times the BDP. The answer is the smallest of \
them that keeps 98 % of the goodput; the discipline that is best for a call (or, without a call, for a ping); and the \
tc command that sets it. Differences within the scatter of the repetitions do not count. The page shows goodput \
against latency for every queue.

    [bold]Examples[/bold]

      bufferscope choose ucas-reproduce

      bufferscope choose my-home.toml --repeat 5

      bufferscope choose my-home.toml --link wan.reverse --set link.wan.rate=50mbit

      bufferscope choose my-home.toml --json | jq -r .command
    """
    from bufferscope.cli.choices import document, print_choice
    from bufferscope.cli.choosing import one_point
    from bufferscope.cli.execute import execute, measure, read
    from bufferscope.cli.pages import present
    from bufferscope.cli.tables import print_warnings
    from bufferscope.engines import one_engine
    from bufferscope.report import build
    from bufferscope.studies.choice import Choice, plan_study
    from bufferscope.studies.choice.fmt import opening

    silent = quiet or json
    options.page(report, no_report, silent, Path(), stills=stills)  # refuse conflicting options before anything runs
    chosen = one_engine(engine, kernel)
    (loaded,) = read([experiment], overrides)
    study = plan_study(loaded, one_point(loaded, point or ()), chosen, link)
    left = f"the runs are in {out}/"
    (result,) = execute([study.experiment], [chosen], out, seed, repeat, jobs, silent, reuse, cluster, "single")
    directory = options.page(report, no_report, silent, Path("report") / result.experiment)
    if not silent:
        measure(result, left)
    choice = Choice(study, result)

    def text() -> None:
        print_choice(choice)
        print_warnings([result])

    present(
        json=json,
        quiet=quiet,
        text=text,
        document=lambda: document(choice),
        directory=directory,
        write=lambda path, step: build([result], path, step, opening=opening(choice), stills=stills),
        left=left,
    )
