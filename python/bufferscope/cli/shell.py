"""`bufferscope shell`."""

from typing import Annotated

import typer

from bufferscope.cli import options
from bufferscope.cli.completion import complete_experiment, complete_shell
from bufferscope.cli.saying import note

FIRST_SEED = 1


def shell(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT|NUMBER",
            help="A name from the catalogue or the path of a TOML file; or the number of a running shell, to join its "
            "network.",
            autocompletion=complete_experiment,
        ),
    ],
    on: Annotated[str, typer.Option("--on", metavar="HOST", help="The host (or router) to run it on.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND [ARGS]...]", help="What to run. Default: your shell.", show_default=False),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="HOST=COMMAND",
            help="Also run this command in the background, as in h2='iperf3 -s'; may be given several times.",
        ),
    ] = None,
    traffic: Annotated[bool, typer.Option("--with-traffic", help="Also run the experiment's own traffic.")] = False,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Which kernel: host, this machine's; guest, a virtual machine's.",
            autocompletion=complete_shell,
        ),
    ] = "host",
    kernel: options.Kernel = None,
    point: options.Point = None,
    overrides: options.Set = None,
    seed: options.Seed = FIRST_SEED,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Run a shell, or any program, inside an experiment's network.

    The program runs on one of the hosts, with your files and your terminal; its packets take the experiment's path.
    Hosts know each other by name. When the program ends, the network is removed. In a guest, the program has your
    terminal and programs from this machine, but none of its files.

    [bold]Examples[/bold]

      bufferscope shell ucas-reproduce --on h1

      bufferscope shell ucas-reproduce --on h1 --with h2='iperf3 -s' -- iperf3 -c h2 -t 10

      bufferscope shell ucas-reproduce --on r1 --with h1='iperf3 -c h2 -t 60' --with h2='iperf3 -s' -- watch tc -s qdisc

      bufferscope shell 12345 --on h2                  another shell in the network of shell 12345

      bufferscope shell ucas-reproduce --on h1 --engine guest -- ping -c 5 h2
    """
    from bufferscope.base.errors import InputError
    from bufferscope.engines import REGISTRY
    from bufferscope.engines.shell import request

    shells = {name: each.shell() for name, each in REGISTRY.items() if each.shell}
    if engine not in shells:
        there = ", ".join(f"{name} ({each.about})" for name, each in shells.items())
        raise InputError(f"--engine: found {engine!r}; allowed: {there}")
    if kernel is not None and REGISTRY[engine].default_kernel is None:
        raise InputError("--kernel chooses the guest's kernel; it needs --engine guest")
    if experiment.isdecimal():
        if beside or traffic or point or overrides or seed != FIRST_SEED:
            raise InputError(
                f"{experiment} is already running; --with, --with-traffic, --point, --set and --seed cannot change it"
            )
        shells[engine].join(experiment, on, command or (), quiet=quiet)
    from bufferscope.cli.choosing import one_point
    from bufferscope.cli.notes import tell
    from bufferscope.model.experiment import load

    loaded = load(experiment, overrides or ())
    if not quiet:
        tell([loaded])
    network = request.ShellNetwork(
        one_point(loaded, point or ()), [request.BackgroundCommand.parse(text) for text in beside or ()], traffic, seed
    )
    ending = shells[engine].run(
        network, on, command or (), kernel=kernel, quiet=quiet, note=_unheard if quiet else _note
    )
    if ending.message:
        _note(ending.message)
    raise typer.Exit(ending.status)


def _note(text: str) -> None:
    note(f"bufferscope: {text}")


def _unheard(_: str) -> None:
    pass
