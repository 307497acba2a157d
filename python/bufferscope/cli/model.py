"""`bufferscope model`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options

if TYPE_CHECKING:
    from bufferscope.store.run import Run
    from bufferscope.studies.modelling.fitting import HeldPhase, LineFit

NO_FIT = 1


def model(
    run: options.LiveRun = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help="The experiment file to write.", dir_okay=False)
    ] = Path("model.toml"),
    phase: Annotated[
        str | None,
        typer.Option(
            "--phase",
            metavar="NAME",
            help="The load of the file: download, upload or both. Default: that of the phase with the longest delay.",
            show_default=False,
        ),
    ] = None,
    seed: options.Seed = 1,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit an experiment to a live measurement, so that changes can be tried before anything is bought or changed.

    The model has the line's rates, its propagation delay and its queues, as far as the measurement shows them. The \
test is simulated on it, and measured and modelled numbers are shown side by side: a model fits if each is within 10 % \
(round trips: or within 2 ms). It exits with 1 if it does not fit. [bold]choose[/bold] and [bold]run[/bold] take the \
file.

    [bold]Examples[/bold]

      bufferscope model

      bufferscope model results/example.org --to my-line.toml --phase upload

      bufferscope choose model.toml --link line.forward
    """
    from bufferscope.store.finding import newest_live
    from bufferscope.store.live import LOADED
    from bufferscope.studies.modelling.fitting import fit, worst
    from bufferscope.studies.modelling.shaping import shaped

    if phase is not None and phase not in LOADED:
        raise InputError(f"--phase: found {phase!r:.60}; allowed: {', '.join(LOADED)}")
    found = newest_live(run or Path("results"))
    fitted = fit(found, seed)
    chosen = next((each for each in fitted.phases if each.kind == phase), None) if phase else worst(fitted.phases)
    if chosen is None:
        raise InputError(f"--phase: {phase} was not measured; there are {', '.join(e.kind for e in fitted.phases)}")
    _write(to, fitted, found, chosen)
    predicted = shaped(found, fitted, chosen, seed) if fitted.fits else None
    if json:
        from bufferscope.cli.documents import print_document
        from bufferscope.cli.models import document

        print_document(document(found, fitted, to, predicted))
    elif not quiet:
        from bufferscope.cli.models import print_fit

        print_fit(found, fitted, to, chosen, predicted)
    if not fitted.fits:
        raise typer.Exit(NO_FIT)


def _write(to: Path, fitted: "LineFit", run: "Run", chosen: "HeldPhase") -> None:
    from bufferscope.studies.modelling.fitting import length_s
    from bufferscope.studies.modelling.line import text

    live = run.meta["summary"]["live"]
    phase = next(each for each in live["verdict"]["phases"] if each["kind"] == chosen.kind)
    to.write_text(text(fitted.model, chosen.kind, length_s(live, phase)), encoding="utf-8")


__all__ = ["model"]
