"""The options that several commands have."""

import os
from pathlib import Path
from typing import Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli.completion import (
    complete_engine,
    complete_experiment,
    complete_kernel,
    complete_layout,
    complete_point,
    complete_set,
)

ExperimentName = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A name from the catalogue (see [bold]bufferscope list[/bold]) or the path of a TOML file.",
        autocompletion=complete_experiment,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="What carries the packets: sim, the simulator; guest, a real kernel in virtual time; host, this machine's "
        "kernel.",
        autocompletion=complete_engine,
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="What carries the packets: sim, the simulator; guest, a real kernel in virtual time; host, this machine's "
        "kernel. May be given several times, to show the results side by side. Default: sim.",
        autocompletion=complete_engine,
        show_default=False,
    ),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="The guest's kernel: a series (6.1, 6.12) or a release as [bold]bufferscope guest list[/bold] shows it. "
        "Default: 6.1, or else the newest on this machine.",
        show_default=False,
        autocompletion=complete_kernel,
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="A file with the token.", dir_okay=False, show_default=False),
]
AtMost = Annotated[
    int | None,
    typer.Option(
        "--at-most",
        metavar="SECONDS",
        help="The longest that each phase with a load may last: 10 to 120.",
        show_default=False,
    ),
]
LiveRun = Annotated[
    Path | None,
    typer.Argument(
        metavar="[RUN]",
        help="A live measurement, or a directory of them, of which the newest is taken. Default: the newest one in "
        "results/.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Where the runs are stored.", file_okay=False),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a key of the experiment, as in link.bottleneck.rate=2mbit; may be given several times.",
        autocompletion=complete_set,
    ),
]
Point = Annotated[
    list[str] | None,
    typer.Option(
        "--point",
        metavar="PATH=VALUE",
        help="Take the point with this value of a swept key, as in link.bottleneck.queue.limit=100p; "
        "may be given once for each key. Default: the first value of each key.",
        autocompletion=complete_point,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="PATH=VALUE",
        help="Run only the points with this value of a swept key, as in link.bottleneck.queue.limit=100p; "
        "may be given several times, also for the same key. Default: all points.",
        autocompletion=complete_point,
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed; equal seeds give equal records.")]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", help="Runs of each point, with seeds N, N+1, ...")]
RepeatAsFiled = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        metavar="N",
        help="Runs of each point, with seeds N, N+1, ... Default: as the file says (its key repeat), or 1.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="Number of runs at the same time; does not change any result. Default: one per processor, or fewer if "
        "the memory does not suffice.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the workers of a Dask cluster: tcp://HOST:PORT, its scheduler, or local:N for N workers started "
        "here.",
        show_default=False,
    ),
]
Reuse = Annotated[
    bool,
    typer.Option(
        "--reuse",
        help="Use stored runs of the same scenario, seed and engine build instead of repeating them.",
    ),
]
ReuseOfGuests = Annotated[
    bool | None,
    typer.Option(
        "--reuse/--no-reuse",
        help="Use stored runs of the same scenario, seed and engine build instead of repeating them. Default: those of "
        "the guest, so that an interrupted command can continue.",
        show_default=False,
    ),
]
Capture = Annotated[
    bool,
    typer.Option(
        "--capture",
        help="Store the packets that guest or host carry, for [bold]bufferscope export --format pcapng[/bold].",
    ),
]
Layout = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="How the runs are stored: single, each in its own directory; sweep, many together (simulator only); "
        "auto, together if there are at least 200 short runs of the simulator.",
        autocompletion=complete_layout,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 1 if an expectation is not reproduced or its metric was not measured."),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="DIR", help="Where the page is written.", file_okay=False, show_default=False),
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Draw no figures and write no page.")]
Stills = Annotated[
    bool,
    typer.Option(
        "--stills",
        help="Also draw each chart as a picture: in the page, for paper and for browsers without scripts, and as SVG "
        "and PNG in figures/ beside it.",
    ),
]


def page(report: Path | None, no_report: bool, silent: bool, usual: Path, *, stills: bool = False) -> Path | None:
    """The directory for the page of a command that may draw one; None: draw no page.

    A `silent` command (`--json`, `--quiet`) draws one only if `--report` asks for it.
    """
    if no_report and report:
        raise InputError("--no-report and --report exclude one another")
    if no_report or (silent and not report):
        if stills:
            raise InputError("--stills draws the pictures of a page, and none is written; add --report DIR")
        return None
    return report or usual


def token(text: str | None, file: Path | None) -> str:
    """The token of a server of live tests: as given, from a file, or from the environment; `""` without any.

    Raises `InputError` if it is given twice, or if the file cannot be read.
    """
    from bufferscope.engines.live.program import TOKEN, token_in

    if text is not None and file is not None:
        raise InputError("--token and --token-file exclude one another")
    return token_in(file) if file else text or os.environ.get(TOKEN, "")
