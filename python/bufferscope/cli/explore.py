"""`bufferscope explore`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options
from bufferscope.cli.completion import complete_experiment
from bufferscope.cli.saying import note, say
from bufferscope.cli.stored import is_stored

if TYPE_CHECKING:
    from bufferscope.report.explorer import Opened


def explore(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT|RUN]",
            help="An experiment (a name from the catalogue or a TOML file), or the directory of a stored run. Default: "
            "a home network.",
            autocompletion=complete_experiment,
            show_default=False,
        ),
    ] = None,
    point: options.Point = None,
    overrides: options.Set = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Random seed; equal seeds give equal records. Default: 1; a stored run has its own.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--http-port",
            metavar="N",
            help="The TCP port of the page. Default: one that is free.",
            min=0,
            max=65535,
            show_default=False,
        ),
    ] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address, without opening a browser.")
    ] = False,
) -> None:
    """Open an experiment in the explorer: a page that runs the simulator in a browser.

    Move a slider, and the queue answers. The page is served to this machine alone, until Ctrl-C; it sends nothing to
    anyone. Its runs are those of [bold]bufferscope run[/bold] with the same seed.

    [bold]Examples[/bold]

      bufferscope explore

      bufferscope explore ucas-reproduce --set link.bottleneck.queue.limit=20p

      bufferscope explore my-home.toml --no-open --http-port 8000

      bufferscope explore results/ucas-reproduce/run-sim-s1-0f3a2b1c
    """
    from bufferscope.report.explorer import Server, open_browser

    opened = _opened(what, point, overrides, seed)
    with Server(opened, port) as server:
        shown = not no_open and open_browser(server.address)
        say(f"The explorer: {server.address}")
        sys.stdout.flush()
        note("Ctrl-C ends it." if shown else "Open this address in a browser on this machine. Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            note("The explorer has ended.")


def _opened(
    what: str | None, point: list[str] | None, overrides: list[str] | None, seed: int | None
) -> "Opened | None":
    """The experiment for the page to open; None if the page opens its default."""
    changed = bool(point or overrides or seed is not None)
    if what is None:
        if changed:
            raise InputError("--point, --set and --seed change an experiment: name one")
        return None
    from bufferscope.report.explorer import Opened, of_run, run_of

    if is_stored(what):
        from bufferscope.store.finding import find_anywhere

        if changed:
            raise InputError("--point, --set and --seed change an experiment; a stored run has its own")
        path = Path(what)
        return of_run(run_of(path, find_anywhere(path)))
    from bufferscope.cli.choosing import one_point
    from bufferscope.cli.notes import tell
    from bufferscope.model.experiment import load

    experiment = load(what, overrides or ())
    tell([experiment])
    return Opened.of(
        experiment, experiment.points.index(one_point(experiment, point or ())), 1 if seed is None else seed
    )
