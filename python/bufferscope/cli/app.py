"""The commands together."""

from typing import Annotated

import typer

from bufferscope._core import __version__
from bufferscope.cli import (
    agree,
    browse,
    choose,
    commands,
    compare,
    explain,
    explore,
    export,
    fix,
    guest,
    importing,
    inspect,
    measure,
    model,
    reproduce,
    run,
    serve,
    shell,
    size,
    system,
)

HELP = """An instrument for bufferbloat: reproduce it, measure it, explain it, fix it.

An experiment is a TOML file: a network, its queues, the traffic, and the results that a document reports. \
Some come with bufferscope (the catalogue). Each run is stored as a directory of tables under results/.

[bold]Start here[/bold]

  bufferscope list                        show the catalogue

  bufferscope run ucas-reproduce          run one, and check it against its document

  bufferscope reproduce                   run them all and write a page with every figure

  bufferscope compare results/ucas-reproduce   compare its runs with one another

  bufferscope explain results/ucas-reproduce   say where the delay was, why, and what would help

  bufferscope choose my-home.toml         say which queue to take, and why

  bufferscope size --rate 10mbit --rtt 40ms   say how large the buffer of a line should be

  bufferscope explore                     move a slider in a browser, and watch the queue answer

  bufferscope agree ucas-reproduce        compare the simulator with a real kernel

  bufferscope measure example.org         measure the connection to a server, and say where it queues

  bufferscope fix                         say what removes that queue: what to type, where, and why

  bufferscope model                       fit an experiment to that measurement, to try changes on
"""

app = typer.Typer(
    name="bufferscope",
    help=HELP,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from bufferscope.base.commit import commit

        known = f" (commit {commit()})" if commit() else ""
        print(f"bufferscope {__version__}{known}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _bufferscope(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show version and commit, and exit.",
            is_eager=True,
            callback=_show_version,
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("list")(browse.list_)
app.command("show")(browse.show)
app.command("run")(run.run)
app.command("reproduce")(reproduce.reproduce)
app.command("choose")(choose.choose)
app.command("size")(size.size)
app.command("compare")(compare.compare)
app.command("explain")(explain.explain)
app.command("explore")(explore.explore)
app.command("export")(export.export)
app.command("import")(importing.import_)
app.command("inspect")(inspect.inspect)
app.command("measure")(measure.measure)
app.command("fix")(fix.fix)
app.command("model")(model.model)
app.command(
    "serve", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, add_help_option=True
)(serve.serve)
app.command("agree")(agree.agree)
app.command("commands")(commands.commands)
app.command("shell")(shell.shell)
app.command("schema")(system.schema)
app.command("doctor")(system.doctor)
app.add_typer(guest.app)
