"""`bufferscope guest build`, `bufferscope guest list` and `bufferscope guest prune`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.cli import options
from bufferscope.cli.saying import note

if TYPE_CHECKING:
    from bufferscope.engines.guest.cache_gc import CacheEntry

app = typer.Typer(
    name="guest",
    help="Linux kernels for [bold]--engine guest[/bold]: a real kernel in virtual time.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class ExtraName(StrEnum):
    """The modules that can be compiled for a kernel (`EXTRA` of `engines.guest.extra_modules`)."""

    DUALPI2 = "dualpi2"


KernelName = Annotated[
    str | None,
    typer.Option("--kernel", metavar="NAME", help="A series (6.1, 6.12, 7.3) or a release as `guest list` shows it."),
]


@app.command("build")
def build(
    kernel: KernelName = None,
    deb: Annotated[
        list[Path] | None,
        typer.Option(
            "--deb",
            metavar="FILE",
            help="A kernel package to use; give several if the kernel is packaged in parts.",
        ),
    ] = None,
    module: Annotated[
        ExtraName | None,
        typer.Option(
            "--module",
            help="Also compile this module for the kernel, which Debian leaves out (fetches 185 MB, takes minutes).",
        ),
    ] = None,
) -> None:
    """Prepare a guest: fetch its kernel if needed, build its image, boot it once and save its state.

    Without [bold]--deb[/bold], a kernel already on this machine is used, or one is fetched from Debian with apt (no
    root needed). [bold]--kernel 7.3 --module dualpi2[/bold] adds DualPI2 to it, compiled from Debian's source of that
    kernel.
    """
    from bufferscope.engines import agent
    from bufferscope.engines.guest import build as guest

    if kernel is not None and deb:
        raise typer.BadParameter("give --kernel or --deb, not both")
    chosen = guest.packages(deb) if deb else guest.kernel(kernel, _say)
    if module is not None:
        guest.add_module(chosen, module, _say)
    built = guest.build(chosen, agent.program(), _say)
    print(f"Linux {built.release} is ready: bufferscope run EXPERIMENT --engine guest")


@app.command("list")
def list_(json: options.Json = False) -> None:
    """Show the kernels on this machine and those that apt offers, and the guests in the cache with their sizes."""
    from bufferscope.engines.guest import build as guest
    from bufferscope.engines.guest import cache_gc

    known, kept = guest.known(), cache_gc.kept()
    if json:
        from bufferscope.cli.documents import print_document

        print_document(
            {
                "kernels": [
                    {"release": k.release, "series": k.series, "state": k.state, "from": k.origin} for k in known
                ],
                "kept": [
                    {"kind": k.kind, "release": k.release, "bytes": k.size_bytes, "path": str(k.path)} for k in kept
                ],
            }
        )
    else:
        from bufferscope.cli.tables import print_rows

        rows = [(k.series, k.release, k.state, k.origin) for k in known]
        print_rows("Kernels for --engine guest", ("Series", "Release", "State", "From"), rows)
        if kept:
            _print_kept(
                f"In the cache, {_size(kept)} in all; `bufferscope guest prune` removes what is not needed", kept
            )


@app.command("prune")
def prune() -> None:
    """Remove built guests that no run of this installation would use: those of other agents, kernels and emulators.

    Guests built for [bold]bufferscope shell[/bold] are removed too; kernel packages stay. If a removed guest is needed
    again, the next run or shell rebuilds it, which takes a moment.
    """
    from bufferscope.engines import agent
    from bufferscope.engines.guest import cache_gc

    removed = cache_gc.prune(agent.program())
    if removed:
        _print_kept(f"Removed, {_size(removed)} in all", removed)
    else:
        print("Nothing to remove: every guest in the cache is needed.")


def _print_kept(title: str, kept: "list[CacheEntry]") -> None:
    from bufferscope.cli.tables import print_rows

    rows = [(each.kind, each.release or "", _size([each]), each.path.name) for each in kept]
    print_rows(title, ("Kind", "Kernel", "Size", "Name"), rows)


def _size(kept: "list[CacheEntry]") -> str:
    return f"{sum(each.size_bytes for each in kept) / 2**20:.1f} MiB"


def _say(what: str) -> None:
    note(what)
