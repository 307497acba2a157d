"""`bufferscope measure`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options
from bufferscope.engines.live.program import TOKEN

if TYPE_CHECKING:
    from bufferscope.store.run import Run

NOT_COMPLETE, INTERRUPTED = 1, 130
DURATION = re.compile(r"(?P<number>\d{1,9}(\.\d{1,6})?) ?(?P<unit>s|m|min|h|d)")
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def measure(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="The server, as in example.org or 192.0.2.1:47300, where [bold]bufferscope serve[/bold] runs; or the "
            "URL of another server: https://HOST for responsiveness (RPM), ndt7://HOST for ndt7.",
            show_default=False,
        ),
    ],
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TOKEN",
            help="The token that the server printed. Other users of this machine can see it here, but not in the "
            f"environment variable {TOKEN}.",
            show_default=False,
        ),
    ] = None,
    token_file: options.TokenFile = None,
    idle: Annotated[bool, typer.Option("--idle", help="Measure the idle path only, without any load.")] = False,
    phases: Annotated[
        str | None,
        typer.Option(
            "--phases",
            metavar="NAMES",
            help="Only these: idle, download, upload, both, with commas. Default: all of them.",
            show_default=False,
        ),
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option(
            "--interface",
            metavar="NAME",
            help="The interface to measure, as in wlan0. Default: that of the route to the server.",
            show_default=False,
        ),
    ] = None,
    flows: Annotated[
        int | None,
        typer.Option("--flows", metavar="N", help="The connections of the load in each direction.", show_default=False),
    ] = None,
    congestion: Annotated[
        str | None,
        typer.Option(
            "--congestion",
            metavar="NAME",
            help="The congestion control of the load, as in cubic.",
            show_default=False,
        ),
    ] = None,
    kernel_send_buffer: Annotated[
        bool,
        typer.Option(
            "--kernel-send-buffer",
            help="Let the load's send buffers grow as the kernel likes, as for most programs, to see how long "
            "data waits there.",
        ),
    ] = False,
    flood: Annotated[
        bool,
        typer.Option(
            "--flood",
            help="After the load, send a flood of UDP packets in each direction, at twice the goodput for 5 s at most, "
            "to see the worst case of the buffers. The server must accept it (serve --accept-flood).",
        ),
    ] = False,
    at_most: options.AtMost = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="With a URL: trust any certificate of the server.")
    ] = False,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint",
            metavar="HEX",
            help="With a URL: trust the certificate with this SHA-256.",
            show_default=False,
        ),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(
            "--draft",
            metavar="VERSION",
            help="With https://: 09 takes the intervals of that version of the draft, 5 s instead of 1 s.",
            show_default=False,
        ),
    ] = None,
    continuous: Annotated[
        bool,
        typer.Option("--continuous", help="Watch the connection for hours: an echo a second, and no load by default."),
    ] = False,
    lasts: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="How long to watch, as in 30min, 12h or 6d. Default: until Ctrl-C, 6 days at most.",
            show_default=False,
        ),
    ] = None,
    load_every: Annotated[
        str | None,
        typer.Option(
            "--load-every",
            metavar="DURATION",
            help="While watching, test with load this often, as in 6h; each test is a run of its own.",
            show_default=False,
        ),
    ] = None,
    out: options.Out = Path("results"),
    report: options.Report = None,
    no_report: options.NoReport = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure this machine's connection: how much delay load adds, in which queue, how sure that is, and what to do.

    The server runs [bold]bufferscope serve[/bold], which prints the line to type here. The test measures the idle \
path, then loads it in each direction and in both, until goodput and delay have levelled off: usually within a minute \
or two. It needs no privilege. What it transfers counts towards a data plan. Ctrl-C ends it early and keeps what was \
measured. The page report/HOST/index.html shows the result; with --json or --quiet, it is written only if --report is \
given.

    HOST may also be the URL of a server that is not one of bufferscope and needs no token. The test then measures \
responsiveness (RPM, draft-ietf-ippm-responsiveness) with https://HOST, or goodput with ndt7://HOST. It knows less \
than a test with [bold]bufferscope serve[/bold], and says what that leaves open.

    With --continuous, the connection is watched instead: when it was bad, for how long, and in which direction. \
Ctrl-C ends that and stores the run.

    [bold]Examples[/bold]

      bufferscope measure example.org --token TOKEN

      BUFFERSCOPE_TOKEN=TOKEN bufferscope measure example.org --phases upload

      bufferscope measure example.org --token-file token --flood

      bufferscope measure example.org --token-file token --continuous --for 12h --load-every 6h

      bufferscope measure https://example.org

      bufferscope measure example.org --token-file token --json | jq -r '.verdict.grade'

      bufferscope compare before=results/example.org/run-live-s0-0f3a2b1c after=results/example.org/run-live-s0-71c09d3e
    """
    from bufferscope.cli.measuring import shown
    from bufferscope.cli.watching import watched
    from bufferscope.engines.live.program import Request
    from bufferscope.interop.live.measuring import experiment
    from bufferscope.interop.live.measuring import measure as measured

    words = tuple(word.strip() for word in phases.split(",")) if phases is not None else ()
    request = Request(
        host,
        "" if "://" in host else options.token(token, token_file),
        words,
        idle,
        flows,
        congestion,
        interface,
        at_most,
        continuous,
        _seconds("--for", lasts),
        _seconds("--load-every", load_every),
        kernel_send_buffer,
        flood,
        insecure,
        fingerprint,
        draft,
    )
    silent = quiet or json
    directory = options.page(report, no_report, silent, Path("report") / experiment(request))
    with (watched if continuous else shown)(host, silent=silent) as watch:
        found = measured(request, out, watch)
    run = found.run
    _present(run, directory, json=json, quiet=quiet)
    _leave(run, found.was_interrupted)


def _present(run: "Run", directory: Path | None, *, json: bool, quiet: bool) -> None:
    from bufferscope.cli.live import document, picture, print_measured
    from bufferscope.cli.pages import present
    from bufferscope.cli.saying import say
    from bufferscope.report import build
    from bufferscope.report.live import opening
    from bufferscope.results.result import Result

    page = present(
        json=json,
        quiet=quiet,
        text=lambda: print_measured(run),
        document=lambda: document(run),
        directory=directory,
        write=lambda path, step: build([Result([run])], path, step, opening=opening(run), stills=True),
        left=f"the run is in {run.path}/",
    )
    if page and not (json or quiet):
        say(f"The picture: {picture(page, run)}")


def _seconds(option: str, text: str | None) -> float | None:
    """A duration as in `12h`, in seconds. Raises `InputError` for any other text."""
    if text is None:
        return None
    if not (found := DURATION.fullmatch(text)):
        raise InputError(f"{option}: found {text!r:.40}; allowed: a number with s, min, h or d, as in 12h")
    return float(found["number"]) * UNITS[found["unit"]]


def _leave(run: "Run", was_interrupted: bool) -> None:
    """Exit with the status of an incomplete measurement, if it is one."""
    from bufferscope.cli.saying import note

    live = run.meta["summary"]["live"]
    if live["complete"]:
        return
    note(f"bufferscope: the measurement is not complete: {live['reason'] or 'it ended early'}")
    raise typer.Exit(INTERRUPTED if was_interrupted else NOT_COMPLETE)
