"""`bufferscope fix`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options
from bufferscope.engines.live.program import TOKEN

if TYPE_CHECKING:
    from bufferscope.analysis.fixing.advice import Advice
    from bufferscope.engines.live.program import Request
    from bufferscope.engines.local.facts import MachineFacts
    from bufferscope.interop.live.curing import Trial
    from bufferscope.store.run import Run

NOT_BETTER = 1
CONGESTION = "tcp_congestion_control"


def fix(
    run: options.LiveRun = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME",
            help="What to set: linux, openwrt, opnsense, pfsense, mikrotik (the router), this-machine, or provider (a "
            "report to send). Default: the device that has the queue; for a router, openwrt.",
            show_default=False,
        ),
    ] = None,
    link: Annotated[
        str,
        typer.Option(
            "--link",
            metavar="NAME",
            help="The kind of the line, for the headers that it adds to each packet: docsis, ethernet, ether-vlan, "
            "pppoe-ptm, bridged-ptm, pppoe-llcsnap, pppoa-vcmux, ... (the keywords of tc-cake), conservative, or "
            "unknown.",
        ),
    ] = "unknown",
    interface: Annotated[
        str | None,
        typer.Option(
            "--interface",
            metavar="NAME",
            help="The interface to set: of a router, the one to the modem (default: wan); of this machine, default: "
            "that of the route to the server.",
            show_default=False,
        ),
    ] = None,
    qdisc: Annotated[
        str | None,
        typer.Option(
            "--qdisc",
            metavar="NAME",
            help="The queueing discipline: cake, fq_codel, or bfifo (a short tail-drop queue, for a kernel with "
            "neither). Default: cake; on this machine, the best that its kernel has.",
            show_default=False,
        ),
    ] = None,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Try it on this machine: apply it, measure again, keep it only if that is better."
        ),
    ] = False,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin",
            metavar="PERCENT",
            min=0,
            max=50,
            help="What a shaper leaves unused of the measured rate. Default: 5 for uploads, 10 for downloads.",
            show_default=False,
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="With --apply: raise the rate of the shaper step by step while the delay stays short, measuring again "
            "each time.",
        ),
    ] = False,
    number: Annotated[
        int | None,
        typer.Option(
            "--cure",
            metavar="NUMBER",
            min=1,
            help="With --apply: which of the printed cures to try. Default: the first that can be undone by itself.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask: apply it, and keep it if the measurement is better.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Restore the settings that this machine had before --apply.")
    ] = False,
    persist: Annotated[
        bool,
        typer.Option(
            "--persist",
            help="Make what --apply has kept permanent: by a systemd unit, or by uci on OpenWrt. --undo removes it.",
        ),
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="HOST",
            help="The server to measure with again. Default: that of RUN.",
            show_default=False,
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TOKEN",
            help=f"The token that the server printed, for --apply. Better: the environment variable {TOKEN}.",
            show_default=False,
        ),
    ] = None,
    token_file: options.TokenFile = None,
    at_most: options.AtMost = None,
    out: options.Out = Path("results"),
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what removes the queue that a live measurement found: what to type, where, and why.

    The rates of shapers come from the measured goodput. A measurement without a clear place gets no command. With \
--apply, and root, this machine's own queue is cured: the present settings are saved, the change is made and measured, \
and it is undone unless the delay is shorter and you confirm within a minute. It is also undone if this program is \
killed, or if the terminal or the connection is lost.

    [bold]Examples[/bold]

      bufferscope fix

      bufferscope fix results/example.org --device linux --link docsis

      bufferscope fix --device provider > report.txt

      sudo BUFFERSCOPE_TOKEN=TOKEN bufferscope fix --apply

      sudo BUFFERSCOPE_TOKEN=TOKEN bufferscope fix --apply --tune

      sudo bufferscope fix --undo
    """
    _check(apply=apply, undo=undo, persist=persist, run=run, more=tune or number is not None)
    if undo:
        _undo(yes=yes, json=json, quiet=quiet)
        return
    if persist and not apply:
        _persist(quiet=quiet or json)
        return
    measured = _measured(run, out)
    machine = _machine(measured, interface, target, needed=apply)
    part = None if margin is None else margin / 100
    advice = _advice(measured, target, link, interface, qdisc, machine, part, apply=apply)
    if not apply:
        _print(measured, advice, json=json, quiet=quiet)
        return
    assert machine
    from bufferscope.cli.fixes import confirm, print_step, trial_document
    from bufferscope.cli.measuring import shown
    from bufferscope.interop.live.curing import applicable, try_change

    step = applicable(advice, number)
    request = _request(measured, host, token, token_file, interface, at_most, step.lines)

    def raised(less: float) -> tuple[str, ...]:
        other = _advice(measured, target, link, interface, qdisc, machine, part, apply=True, raised=less)
        return applicable(other, number).lines

    if not (quiet or json):
        print_step(step)
    if not yes and not confirm(f"Apply this to {machine.interface}, and measure again?", None):
        raise InputError("nothing was changed; --yes does not ask")
    with shown(request.host, silent=quiet or json) as watch:
        trial = try_change(
            advice,
            machine.interface,
            step.lines,
            request,
            out,
            watch,
            lambda trial: yes or _is_confirmed(trial, silent=quiet or json),
            raised if tune else None,
        )
    unit = _make_permanent() if persist and trial.is_kept else None
    if json:
        from bufferscope.cli.documents import print_document

        print_document(trial_document(trial, step, unit))
    elif not quiet:
        _report(trial, unit, asked=not yes)
    if not trial.is_kept:
        raise typer.Exit(NOT_BETTER)


def _check(*, apply: bool, undo: bool, persist: bool, run: Path | None, more: bool) -> None:
    if more and not apply:
        raise InputError("--tune and --cure need --apply")
    if undo and (apply or persist or run):
        raise InputError("--undo takes no RUN, and excludes --apply and --persist")
    if persist and run and not apply:
        raise InputError("--persist without --apply takes no RUN: it makes permanent what was kept")


def _measured(run: Path | None, out: Path) -> "Run":
    """The live measurement that is meant: the newest one of a directory."""
    from bufferscope.store.finding import newest_live

    return newest_live(run or out)


def _machine(run: "Run", interface: str | None, target: str | None, *, needed: bool) -> "MachineFacts | None":
    """What is known of this machine; None if that is not needed, or not to be had."""
    from bufferscope.analysis.fixing.advising import machine_of
    from bufferscope.engines.local.facts import checked, facts

    if interface:
        checked(interface)
    return facts(run.meta["summary"]["live"]["address"], interface) if needed else machine_of(run, target, interface)


def _advice(
    run: "Run",
    target: str | None,
    link: str,
    interface: str | None,
    qdisc: str | None,
    machine: "MachineFacts | None",
    margin: float | None,
    *,
    apply: bool,
    raised: float = 0.0,
) -> "Advice":
    from bufferscope.analysis.fixing.advising import OWN, THIS_MACHINE, advise

    if apply and target not in (None, THIS_MACHINE):
        raise InputError(f"--apply changes this machine only, and excludes --device {target}")
    advice = advise(run, target or (THIS_MACHINE if apply else None), link, interface, qdisc, machine, raised, margin)
    if apply and not advice.queues:
        raise InputError(f"--apply: nothing to change. {' '.join(advice.reasons)}")
    if apply and target is None and not any(queue.place in OWN for queue in advice.queues):
        places = "; ".join(queue.answer for queue in advice.queues)
        raise InputError(
            f"--apply: the queue is not at this machine, but at: {places}. With --device this-machine, this machine "
            "shapes its own "
            "traffic all the same"
        )
    return advice


def _print(run: "Run", advice: "Advice", *, json: bool, quiet: bool) -> None:
    from bufferscope.cli.fixes import document, print_advice

    if json:
        from bufferscope.cli.documents import print_document

        print_document(document(run, advice))
    elif not quiet:
        print_advice(run, advice)


def _request(
    run: "Run",
    host: str | None,
    token: str | None,
    token_file: Path | None,
    interface: str | None,
    at_most: int | None,
    commands: Sequence[str],
) -> "Request":
    """The same measurement again; with the congestion control that the commands set, if they set one."""
    from bufferscope.engines.live.program import Request
    from bufferscope.store.live import LOADED

    live = run.meta["summary"]["live"]
    loaded = {phase["kind"] for phase in live["verdict"]["phases"]}
    set_by = [line.partition(f"{CONGESTION}=")[2] for line in commands if CONGESTION in line]
    congestion = set_by[0] if set_by else live["parameters"].get("congestion")
    return Request(
        host or live["host"],
        options.token(token, token_file),
        tuple(kind for kind in LOADED if kind in loaded),
        congestion=congestion if isinstance(congestion, str) else None,
        interface=interface,
        at_most_s=at_most,
    )


def _is_confirmed(trial: "Trial", *, silent: bool) -> bool:
    from bufferscope.cli.fixes import confirm, print_comparison
    from bufferscope.engines.local.guard import CONFIRMING_S

    if not silent:
        print_comparison(trial)
    return confirm(f"Keep it? Without an answer within {CONFIRMING_S:.0f} s, it is undone.", CONFIRMING_S)


def _report(trial: "Trial", unit: str | None, *, asked: bool) -> None:
    from bufferscope.cli.fixes import print_comparison, print_end

    if not asked or not trial.is_better:
        print_comparison(trial)
    print_end(trial, unit)


def _undo(*, yes: bool, json: bool, quiet: bool) -> None:
    from bufferscope.cli.saying import say
    from bufferscope.engines.local import changing, unit
    from bufferscope.interop.live import sqm

    text = changing.undo(force=yes)
    if sqm.is_here() and sqm.remove():
        text += " The settings of sqm are those of before."
    if unit.remove(unit.PLACE / unit.NAME):
        text += f" {unit.PLACE / unit.NAME} was removed."
    if json:
        from bufferscope.cli.documents import print_document

        print_document({"undone": text})
    elif not quiet:
        say(text)


def _persist(*, quiet: bool) -> None:
    from bufferscope.cli.saying import say

    done = _make_permanent()
    if not quiet:
        say(done)


def _make_permanent() -> str:
    """Make what was kept permanent, and say how. Raises `InputError` if nothing was."""
    from bufferscope.engines.local import saved, unit
    from bufferscope.interop.live import sqm

    state = saved.read(saved.path())
    if state is None or state["status"] != "kept":
        raise InputError("--persist: nothing was applied and kept; first: bufferscope fix --apply")
    if sqm.is_here():
        return "Run: " + "; ".join(sqm.write(state))
    return f"Written: {unit.write(state)}, which makes it at each start."


__all__ = ["fix"]
