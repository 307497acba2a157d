"""`bufferscope list` and `bufferscope show`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options
from bufferscope.cli.completion import complete_experiment
from bufferscope.cli.saying import say
from bufferscope.cli.stored import is_stored


def list_(
    qdiscs: Annotated[
        bool,
        typer.Option(
            "--qdiscs", help="List the queueing disciplines instead: what each is for, and the engines that have it."
        ),
    ] = False,
    controls: Annotated[bool, typer.Option("--controls", help="List TCP's congestion controls instead.")] = False,
    traffic: Annotated[bool, typer.Option("--traffic", help="List the kinds of [[traffic]] entries instead.")] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="List the metrics instead, with their units.")] = False,
    figures: Annotated[bool, typer.Option("--figures", help="List the figures instead.")] = False,
    formats: Annotated[
        bool, typer.Option("--formats", help="List the formats that are read and written instead.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List the experiments that come with bufferscope, or the names that a file or an option may use.

    Each experiment is a TOML file. [bold]bufferscope show NAME[/bold] prints it; a copy is a good start for your own.

    [bold]Examples[/bold]

      bufferscope list

      bufferscope list --qdiscs

      bufferscope list --metrics --json | jq -r '.metrics[].name'
    """
    lists = {"controls": controls, "traffic": traffic, "metrics": metrics, "figures": figures, "formats": formats}
    wanted = [name for name, is_wanted in {"qdiscs": qdiscs, **lists}.items() if is_wanted]
    if len(wanted) > 1:
        raise InputError(f"found {' and '.join(f'--{name}' for name in wanted)}; allowed: one list at a time")
    if qdiscs:
        _list_qdiscs(json)
        return
    if wanted:
        _list_names(wanted[0], json)
        return
    from bufferscope.model.experiment import catalogue, load

    experiments = [load(name) for name in catalogue()]
    if json:
        from bufferscope.cli.documents import print_document

        keys = ("title", "source", "description")
        print_document([{"name": e.name, **{key: e.document.get(key) for key in keys}} for e in experiments])
    else:
        from bufferscope.cli.tables import print_rows

        rows = [(e.name, str(len(e.points)), e.title) for e in experiments]
        print_rows("The catalogue", ("Name", "Points", "What it shows"), rows)


def _list_names(what: str, json: bool) -> None:
    """One of `LISTINGS`."""
    from bufferscope.cli.lists import LISTINGS

    listing = LISTINGS[what]
    rows = listing.rows()
    if json:
        from bufferscope.cli.documents import print_document

        print_document({what: rows})
    else:
        from bufferscope.cli.tables import print_rows

        shown = [[str(row[key]) for key in listing.headings] for row in rows]
        print_rows(listing.title, tuple(listing.headings.values()), shown)


def _list_qdiscs(json: bool) -> None:
    """The disciplines, with the engines of this machine that have them."""
    from bufferscope._core import QDISCS
    from bufferscope.engines.availability import having, unusable

    known, without = having(), unusable()
    if json:
        from bufferscope.cli.documents import print_document

        rows = [
            {"name": name, "purpose": QDISCS[name].purpose, "source": QDISCS[name].source, "engines": has}
            for name, has in known.items()
        ]
        print_document({"qdiscs": rows, "unusable_engines": without})
    else:
        from bufferscope.cli.tables import print_rows

        words = {True: "yes", False: "no", None: "?"}
        engines = list(next(iter(known.values())))
        listed = [
            (name, QDISCS[name].purpose, *(words[has[engine]] for engine in engines)) for name, has in known.items()
        ]
        print_rows("The queueing disciplines", ("Name", "What it is for", *engines), listed)
        if any(has is None for row in known.values() for has in row.values()):
            print("?: not known before `bufferscope guest build`.")
        for engine, reason in without.items():
            print(f"{engine} cannot be used here: {reason}")


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME|RUN",
            help="An experiment (a name from the catalogue or a TOML file), or a directory with stored runs.",
            autocompletion=complete_experiment,
        ),
    ],
    json: options.Json = False,
) -> None:
    """Show an experiment's text, a stored run's summary, or the list of runs in a directory.

    [bold]Examples[/bold]

      bufferscope show ucas-reproduce

      bufferscope show ucas-reproduce > my-lab.toml         start your own from it

      bufferscope show results/ucas-reproduce               its runs, and how they differ

      bufferscope show results/ucas-reproduce/run-sim-s1-0f3a2b1c
    """
    if is_stored(what):
        _show_stored(Path(what), json)
    else:
        _show_experiment(what, json)


def _show_stored(path: Path, json: bool) -> None:
    """A run, or all runs in a directory."""
    from bufferscope.store.reading import is_run

    if is_run(path) or not path.is_dir():
        _show_run(path, json)
        return
    from bufferscope.store.finding import find_anywhere

    runs = find_anywhere(path)
    if json:
        from bufferscope.cli.documents import listing_document, print_document

        print_document({"runs": listing_document(runs)})
    else:
        from bufferscope.cli.listing import print_listing

        print_listing(runs)


def _show_run(path: Path, json: bool) -> None:
    from bufferscope.store.live import live_of
    from bufferscope.store.run import Run

    run = Run(path)
    if json:
        from bufferscope.cli.documents import print_document, run_document

        verdict = {"verdict": live["verdict"]} if (live := live_of(run.meta["summary"])) else {}
        print_document({"experiment": run.experiment, **run_document(run), **verdict})
    else:
        from bufferscope.cli.tables import print_run

        print_run(run)


def _show_experiment(name: str, json: bool) -> None:
    from bufferscope.cli.notes import tell
    from bufferscope.model.experiment import load

    experiment = load(name)
    tell([experiment])
    if json:
        from bufferscope.cli.documents import print_document

        points = [{"values": point.values, "scenario": point.scenario} for point in experiment.points]
        document = {**experiment.document, "expect": experiment.expectations}
        print_document({"name": experiment.name, "document": document, "points": points})
    else:
        say(experiment.text, end="")
