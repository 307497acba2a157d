"""`bufferscope model`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options

NO_FIT = 1


def model(
    measured: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[MEASUREMENT]...",
            help="A live measurement, or a directory of them, of which the newest is taken; another run; or a file: a "
            "capture of packets, a data file of Flent, or what import reads. Several are of the same line. Default: "
            "the newest live measurement in results/.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help="The experiment file to write.", dir_okay=False)
    ] = Path("model.toml"),
    phase: Annotated[
        str | None,
        typer.Option(
            "--phase",
            metavar="NAME",
            help="The load of the file: download, upload or both. Default: that of the phase with the longest delay. "
            "Of a log of ping: what was loaded meanwhile.",
            show_default=False,
        ),
    ] = None,
    down: Annotated[
        float | None,
        typer.Option(
            "--down",
            metavar="MBIT",
            help="The download rate of the line in Mbit/s, if the file has only round trips.",
            show_default=False,
        ),
    ] = None,
    up: Annotated[
        float | None,
        typer.Option(
            "--up",
            metavar="MBIT",
            help="The upload rate of the line in Mbit/s, if the file has only round trips.",
            show_default=False,
        ),
    ] = None,
    seed: options.Seed = 1,
    out: options.Out = Path("results"),
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit an experiment to a measurement, so that changes can be tried before anything is bought or changed.

    The model has the line's rates, its propagation delay and its queues, as far as the measurement shows them; notes \
say what it does not show. The test is simulated on it, and measured and modelled numbers are shown side by side: a \
model fits if each is within 10 % (round trips: or within 2 ms). It exits with 1 if it does not fit. \
[bold]choose[/bold] and [bold]run[/bold] take the file.

    [bold]Examples[/bold]

      bufferscope model

      bufferscope model results/example.org --to my-line.toml --phase upload

      bufferscope model tcp_upload.flent.gz tcp_download.flent.gz

      bufferscope model upload.pcap

      bufferscope model evening.txt --phase upload --up 10

      bufferscope choose model.toml --link line.forward
    """
    from bufferscope.interop.measured_lines import measured_line
    from bufferscope.store.live import LOADED
    from bufferscope.studies.modelling.fitting import fit
    from bufferscope.studies.modelling.others import given_rates
    from bufferscope.studies.modelling.shaping import shaped

    if phase is not None and phase not in LOADED:
        raise InputError(f"--phase: found {phase!r:.60}; allowed: {', '.join(LOADED)}")
    line, runs = measured_line(measured or [Path("results")], out, given_rates(down, up, phase))
    fitted = fit(line, seed)
    chosen = fitted.phase(phase)
    to.write_text(fitted.experiment(chosen.kind), encoding="utf-8")
    predicted = shaped(fitted, chosen, seed) if fitted.fits else None
    if json:
        from bufferscope.cli.documents import print_document
        from bufferscope.cli.models import document

        print_document(document(runs, fitted, to, predicted))
    elif not quiet:
        from bufferscope.cli.models import print_fit

        print_fit(fitted, to, chosen, predicted)
    if not fitted.fits:
        raise typer.Exit(NO_FIT)


__all__ = ["model"]
