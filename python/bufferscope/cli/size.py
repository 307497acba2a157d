"""`bufferscope size`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options


def size(
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="The bottleneck's rate, as in 10mbit.")],
    rtt: Annotated[str, typer.Option("--rtt", metavar="TIME", help="The base RTT (without queues), as in 40ms.")],
    flows: Annotated[int, typer.Option("--flows", metavar="N", help="Long TCP flows at the same time.")] = 1,
    target: Annotated[
        str,
        typer.Option("--target", metavar="SHARE", help="The least goodput, as a share of that of a very long queue."),
    ] = "98%",
    packet: Annotated[
        str,
        typer.Option(
            "--packet", metavar="SIZE", help="IP packet size for the equations (simulations always use 1500b)."
        ),
    ] = "1500b",
    buffer: Annotated[
        str | None,
        typer.Option(
            "--buffer",
            metavar="SIZE",
            help="Size of an existing buffer, as in 256kb; shows the delay when it is full.",
            show_default=False,
        ),
    ] = None,
    congestion: Annotated[
        str, typer.Option("--congestion", metavar="NAME", help="The flows' congestion control: cubic, reno, ...")
    ] = "cubic",
    no_simulate: Annotated[bool, typer.Option("--no-simulate", help="Evaluate only the equations.")] = False,
    out: options.Out = Path("results"),
    seed: options.Seed = 1,
    repeat: options.Repeat = 3,
    jobs: options.Jobs = None,
    reuse: options.Reuse = False,
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Size the buffer of a line: with the documents' equations, each with its source, and with simulations.

    The simulations search for the smallest tail-drop queue that keeps the goodput (98 % of that of a very long \
queue), and try fq_codel, cake, codel and pie on the same load. Their runs are stored like those of any experiment. \
The page begins with the answer, the table and the commands to type.

    [bold]Examples[/bold]

      bufferscope size --rate 10mbit --rtt 40ms

      bufferscope size --rate 50mbit --rtt 30ms --flows 20 --target 95%

      bufferscope size --rate 1mbit --rtt 20ms --buffer 128kb --no-simulate

      bufferscope size --rate 10mbit --rtt 40ms --json | jq .smallest.limit_packets
    """
    from bufferscope.cli.execute import execute, measure
    from bufferscope.cli.pages import Step, is_drawable, present
    from bufferscope.cli.sizes import document, print_sizing
    from bufferscope.engines import default
    from bufferscope.model.experiment import Experiment
    from bufferscope.report import build
    from bufferscope.results.result import Result
    from bufferscope.store.run import Run
    from bufferscope.studies.sizing import read_line
    from bufferscope.studies.sizing.fmt import opening
    from bufferscope.studies.sizing.sizing import sizing

    if no_simulate and reuse:
        raise InputError("--no-simulate and --reuse exclude one another")
    line = read_line(rate, rtt, flows=flows, target=target, packet=packet, buffer=buffer, congestion=congestion)
    silent, engine = quiet or json, default()
    directory = options.page(report, no_report, silent, Path("report") / "size", stills=stills)
    runs: list[Run] = []

    def carry(experiment: Experiment) -> Result:
        (result,) = execute([experiment], [engine], out, seed, repeat, jobs, silent, reuse, None, "single")
        if not silent:
            measure(result, f"the runs are in {out}/")
        runs.extend(result.runs)
        return result

    sized = sizing(line, None if no_simulate else carry)

    def write(path: Path, step: Step) -> Path:
        assert sized.found, "otherwise there is no page"
        return build([Result(runs)], path, step, opening=opening(sized, sized.found), stills=stills)

    present(
        json=json,
        quiet=quiet,
        text=lambda: print_sizing(sized, out),
        document=lambda: document(sized),
        directory=directory if directory and sized.found and is_drawable(Result(runs)) else None,
        write=write,
    )
