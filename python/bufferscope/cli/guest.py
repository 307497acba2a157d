"""`bufferscope guest build` and `bufferscope guest list`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bufferscope.cli import options

app = typer.Typer(
    name="guest",
    help="Linux kernels for [bold]--engine guest[/bold]: a real kernel in virtual time.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

KernelName = Annotated[
    str | None,
    typer.Option("--kernel", metavar="NAME", help="A series (6.1, 6.12) or a release as `guest list` shows it."),
]


@app.command("build")
def build(
    kernel: KernelName = None,
    deb: Annotated[
        list[Path] | None,
        typer.Option("--deb", metavar="FILE", help="A kernel package to use; several if its modules are packed apart."),
    ] = None,
) -> None:
    """Make a guest ready: fetch its kernel if need be, build its image, start it once and save its state.

    Without [bold]--deb[/bold] a kernel at hand is used, or fetched from Debian with apt (no root needed).
    """
    from bufferscope.engines import agent
    from bufferscope.guest import build as guest

    if kernel is not None and deb:
        raise typer.BadParameter("give --kernel or --deb, not both")
    built = guest.build(guest.packages(deb) if deb else guest.kernel(kernel, _say), agent.program(), _say)
    print(f"Linux {built.release} is ready: bufferscope run EXPERIMENT --engine guest")


@app.command("list")
def list_(json: options.Json = False) -> None:
    """Show the kernels at hand, and what apt offers."""
    from bufferscope.guest import build as guest

    known = guest.known()
    if json:
        from bufferscope.cli.documents import print_document

        print_document([{"release": k.release, "series": k.series, "state": k.state, "from": k.origin} for k in known])
    else:
        from bufferscope.cli.tables import print_rows

        rows = [(k.series, k.release, k.state, k.origin) for k in known]
        print_rows("Kernels for --engine guest", ("Series", "Release", "State", "From"), rows)


def _say(what: str) -> None:
    print(what, file=sys.stderr)
