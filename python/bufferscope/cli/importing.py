"""`bufferscope import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.cli import options
from bufferscope.cli.saying import say
from bufferscope.errors import InputError

if TYPE_CHECKING:
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
            help="flent, irtt, iperf3, ping, fping, smokeping or csv. Default: what the content shows.",
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
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Import what other programs measured: their files become runs, which every other command takes.

    Flent's data files (.flent.gz), the JSON of irtt and iperf3, and the output of ping and fping are recognised by \
their content, also if they are compressed with gzip. Their pings become probes and their transfers flows; what they \
don't say is not made up.

    [bold]Examples[/bold]

      bufferscope import rrul-2026-01-31T120000.flent.gz

      ping -D -i 0.2 -c 300 192.0.2.1 > evening.txt; bufferscope import evening.txt

      bufferscope compare simulated=results/battling-rrul measured=results/rrul-2026-01-31T120000
    """
    from bufferscope.importing.conversion import import_file
    from bufferscope.observed import experiment_name

    if name is not None and experiment_name(name) != name:
        raise InputError(f"--name: found {name!r:.100}; allowed: letters, digits, '.', '_' and '-', as in home-evening")
    runs = [import_file(file, out, kind, name) for file in files]
    if json:
        from bufferscope.cli.documents import print_document, run_document

        print_document({"runs": [{"experiment": run.experiment, **run_document(run)} for run in runs]})
    elif not quiet:
        _print(runs)


def _print(runs: "list[Run]") -> None:
    from bufferscope.cli.tables import print_run

    if len(runs) == 1:
        print_run(runs[0])
        return
    for run in runs:
        say(run.path)
