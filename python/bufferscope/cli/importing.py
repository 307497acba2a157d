"""`bufferscope import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options
from bufferscope.cli.saying import say

if TYPE_CHECKING:
    from bufferscope.cli.pages import Step
    from bufferscope.store.run import Run


def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of other programs.", show_default=False)
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="flent, irtt, iperf3, ping, windows, fping, smokeping or csv. Default: detected from the content.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="The directory of the runs under --out. Default: the name of each file.",
            show_default=False,
        ),
    ] = None,
    out: options.Out = Path("results"),
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Import measurements of other programs: their files become runs, which every other command accepts.

    Flent's data files (.flent.gz), the JSON of irtt and iperf3, and the output of ping (in any language, also of \
Windows), fping and Smokeping are recognised by their content, also if they are compressed with gzip. Their pings \
become probes, and their transfers become flows. Missing values stay empty. A file with several tests becomes several \
runs. The page report/NAME/index.html shows them; with --json or --quiet, it is written only if --report is given.

    [bold]Examples[/bold]

      bufferscope import rrul-2026-01-31T120000.flent.gz

      ping -D -i 0.2 -c 300 192.0.2.1 > evening.txt; bufferscope import evening.txt

      bufferscope compare simulated=results/battling-rrul measured=results/rrul-2026-01-31T120000
    """
    from bufferscope.cli.documents import run_document
    from bufferscope.cli.pages import present
    from bufferscope.interop.external_runs import experiment_name
    from bufferscope.interop.importing.conversion import import_all

    if name is not None and experiment_name(name) != name:
        raise InputError(f"--name: found {name!r:.100}; allowed: letters, digits, '.', '_' and '-', as in home-evening")
    silent = quiet or json
    options.page(report, no_report, silent, Path(), stills=stills)  # refuse conflicting options before anything is read
    runs = [run for file in files for run in import_all(file, out, kind, name)]
    directory = options.page(report, no_report, silent, Path("report") / runs[0].experiment)
    present(
        json=json,
        quiet=quiet,
        text=lambda: _print(runs),
        document=lambda: {"runs": [{"experiment": run.experiment, **run_document(run)} for run in runs]},
        directory=directory,
        write=lambda path, step: _write(runs, path, step, stills=stills),
        left=f"the runs are in {runs[0].path.parent.parent}/",
    )


def _write(runs: "list[Run]", path: Path, step: "Step", *, stills: bool) -> Path:
    from bufferscope.cli.imported import opening
    from bufferscope.report import build
    from bufferscope.results.result import Result

    names = dict.fromkeys(run.experiment for run in runs)
    results = [Result([run for run in runs if run.experiment == name]) for name in names]
    return build(results, path, step, opening=opening(runs), stills=stills)


def _print(runs: "list[Run]") -> None:
    """The verdict and the table of each run, with its warnings; then what to type next."""
    from bufferscope.analysis.explanation import explain_run
    from bufferscope.cli.explanations import print_explanation
    from bufferscope.cli.imported import MOST_SHOWN, next_command
    from bufferscope.cli.tables import print_run

    for run in runs:
        if len(runs) <= MOST_SHOWN:
            print_explanation(run, explain_run(run), many=len(runs) > 1)
            print_run(run)
        else:
            say(run.path)
    command, about = next_command(runs)
    say(f"Next: {command}\n{about}")
