"""`bufferscope export`."""

from pathlib import Path
from typing import Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options
from bufferscope.cli.saying import note, say


def export(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUNS...",
            help="Stored runs: a run's directory, an experiment's directory of runs, results/ itself, or a pattern in "
            "quotes.",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="csv, parquet or json; flent, for Flent; pcapng, the packets, for Wireshark; or qlog, the changes of "
            "TCP's state.",
        ),
    ] = "csv",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the files are written.", file_okay=False)
    ] = Path("export"),
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Write this table only: runs, metrics, probes, flows, queues, flow_queues, drops, transfers, "
            "sojourns, capacity, estimates, round_trips, retransmissions, one_way, hops or stages; may be given "
            "several times. Default: all.",
            show_default=False,
        ),
    ] = None,
    ports: Annotated[
        list[str] | None,
        typer.Option(
            "--port",
            metavar="PORT",
            help="pcapng: packets of this port, such as 'r1>h2'; may be given several times. Default, without --layer: "
            "what tcpdump on the first sender sees; with --layer: all ports.",
            show_default=False,
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            "--layer",
            metavar="LAYER",
            help="pcapng: packets seen there: qdisc, ring, wire, arrived or dropped; may be given several times, for "
            "an interface each. Default with --port: wire.",
            show_default=False,
        ),
    ] = None,
    snaplen: Annotated[
        int, typer.Option("--snaplen", metavar="BYTES", help="pcapng: bytes stored of each packet.")
    ] = 128,
    flows: Annotated[
        list[str] | None,
        typer.Option(
            "--flow",
            metavar="FLOW",
            help="qlog: the log of this connection, such as bulk/1; may be given several times. Default: all.",
            show_default=False,
        ),
    ] = None,
    sampled: Annotated[
        bool,
        typer.Option(
            "--sampled",
            help="qlog: derive the log of a simulated run from its samples, as that of a kernel is.",
        ),
    ] = False,
    mask_addresses: Annotated[
        bool,
        typer.Option(
            "--mask-addresses",
            help="csv, parquet, json: names in place of the addresses of hops, which keep their number in all tables.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Export runs: one tidy file per table, for pandas, R or a spreadsheet; or one file per run, for Flent.

    Every row begins with the run's experiment, engine and seed, and a column for each setting that was swept or \
changed with --set. Times are integer nanoseconds; as in the records, a column's name ends in its unit. An empty cell \
in CSV or a null in JSON is a value that does not exist or is not known, such as the answer to a lost probe.

    [bold]Examples[/bold]

      bufferscope export results/ucas-reproduce

      bufferscope export results --format parquet --out for-the-paper

      bufferscope export 'results/lab/*-s1-*' --table metrics --table probes --force

      bufferscope export results/example.org --mask-addresses

      bufferscope export results/battling-rrul --format flent; flent -p ping_cdf -i export/*.flent.gz

      bufferscope export results/ucas-reproduce/RUN --format pcapng

      bufferscope export results/ucas-reproduce/RUN --format pcapng --port 'r1>h2' --layer qdisc --layer dropped

      bufferscope export results/ucas-reproduce/RUN --format qlog --flow bulk/1
    """
    from bufferscope.cli.progress import steps
    from bufferscope.interop.exporting import PER_RUN, export_each
    from bufferscope.interop.exporting import export as write
    from bufferscope.interop.packets.exporting import FORMAT, export_packets
    from bufferscope.interop.states.exporting import FORMAT as STATES
    from bufferscope.interop.states.exporting import export_states
    from bufferscope.store.finding import find_anywhere
    from bufferscope.studies.comparison.inputs import paths

    found = {run.path.resolve(): run for text in what for path in paths(text) for run in find_anywhere(path)}
    notes: list[str] = []
    if kind != FORMAT and (ports or layers):
        raise InputError(f"{'--port' if ports else '--layer'}: only for --format pcapng")
    if kind != STATES and (flows or sampled):
        raise InputError(f"{'--flow' if flows else '--sampled'}: only for --format qlog")
    if kind in (FORMAT, STATES, *PER_RUN) and mask_addresses:
        raise InputError(f"--mask-addresses: found --format {kind}, which has no addresses of hops")
    if kind in (FORMAT, STATES, *PER_RUN) and tables:
        raise InputError(f"--table: found {', '.join(tables)}; allowed with --format {kind}: none")
    if kind in (FORMAT, STATES):
        what_is_written = "packets" if kind == FORMAT else "states"
        with steps(f"Writing {what_is_written}, per mille", silent=quiet or json, announced=False) as step:

            def told(done: int, whole: int) -> bool:
                step(1000 * done // max(1, whole), 1000)
                return True

            if kind == FORMAT:
                files = export_packets(
                    list(found.values()),
                    out,
                    ports=ports or (),
                    layers=layers or (),
                    snaplen=snaplen,
                    force=force,
                    progress=told,
                )
            else:
                files = export_states(
                    list(found.values()), out, flows=flows or (), sampled=sampled, force=force, progress=told
                )
    elif kind in PER_RUN:
        files, notes = export_each(list(found.values()), out, kind, force=force)
    else:
        files = write(list(found.values()), out, kind, tables=tables or (), force=force, mask_addresses=mask_addresses)
    for sentence in notes:
        note(f"bufferscope: note: {sentence}")
    if json:
        from bufferscope.cli.documents import print_document

        print_document({"files": [str(file) for file in files], "runs": [str(run.path) for run in found.values()]})
    elif not quiet:
        for file in files:
            say(file)
