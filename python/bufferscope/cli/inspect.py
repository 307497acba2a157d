"""`bufferscope inspect`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bufferscope.cli import options
from bufferscope.cli.saying import say

if TYPE_CHECKING:
    from bufferscope.cli.pages import Step
    from bufferscope.interop.inspection.connections import Connection
    from bufferscope.interop.inspection.inspecting import Inspection
    from bufferscope.interop.inspection.quic import OnlyQuicError, QuicConnection
    from bufferscope.interop.inspection.reading import Summary

MOST_ROWS = 20
"""Connections that are printed; all are in the run and in the document of --json."""
MEGABYTE = 1_000_000
MS = 1e6


def inspect(
    captures: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURE...",
            help="Captures of packets: pcap or pcapng, also compressed with gzip; - is standard input.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="The directory of the run under --out. Default: the name of the first capture.",
            show_default=False,
        ),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Only packets from or to this address; may be given several times.",
            show_default=False,
        ),
    ] = None,
    ports: Annotated[
        list[int] | None,
        typer.Option(
            "--transport-port",
            metavar="NUMBER",
            help="Only packets from or to this port of TCP or UDP; may be given several times.",
            show_default=False,
        ),
    ] = None,
    out: options.Out = Path("results"),
    report: options.Report = None,
    no_report: options.NoReport = False,
    stills: options.Stills = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Inspect captures: the round-trip times, windows, losses and goodput of the connections in them.

    Captures of tcpdump or Wireshark, taken at either end or between, become one run, which every other command \
accepts. Captures of the same connections at two vantage points also show the delay of each direction. Files of one \
long capture (tcpdump -C) are joined.

    [bold]Examples[/bold]

      tcpdump -i eth0 -s 128 -w home.pcap tcp or icmp

      bufferscope inspect home.pcap

      bufferscope inspect client.pcapng server.pcapng --name both-ends

      bufferscope inspect home.pcap --host 192.0.2.1 --transport-port 443 --json | jq '.connections[0]'

      tcpdump -i eth0 -s 128 -c 100000 -w - tcp | bufferscope inspect - --no-report
    """
    from bufferscope.cli.pages import present
    from bufferscope.interop.inspection.inspecting import default_name
    from bufferscope.interop.inspection.inspecting import inspect as read
    from bufferscope.interop.inspection.quic import OnlyQuicError

    silent = quiet or json
    options.page(report, no_report, silent, Path(), stills=stills)  # refuse conflicting options before anything is read
    directory = options.page(report, no_report, silent, Path("report") / (name or default_name(captures[0])))
    try:
        with _progress(captures, silent=silent) as progress:
            inspection = read(captures, out, name, hosts or (), ports or (), progress)
    except OnlyQuicError as found:
        _show_only_quic(found, json=json, quiet=quiet)
        return
    present(
        json=json,
        quiet=quiet,
        text=lambda: _print(inspection),
        document=lambda: _document(inspection),
        directory=directory,
        write=lambda path, step: _write(inspection, path, step, stills=stills),
        left=f"the run is in {inspection.run.path}/",
    )


@contextmanager
def _progress(captures: list[str], *, silent: bool) -> Iterator[Callable[[int], bool]]:
    from bufferscope.cli.progress import steps

    sizes = [Path(file).stat().st_size for file in captures if Path(file).is_file()]
    total = sum(sizes) if len(sizes) == len(captures) else 0
    with steps("Reading (megabytes)", silent=silent or not total, announced=False) as step:

        def progress(read_bytes: int) -> bool:
            step(read_bytes // MEGABYTE, total // MEGABYTE)
            return True

        yield progress


def _write(inspection: "Inspection", path: Path, step: "Step", *, stills: bool) -> Path:
    from bufferscope.analysis.explanation import explain_run
    from bufferscope.interop.inspection.connections import connections
    from bufferscope.interop.inspection.opening import opening
    from bufferscope.report import build
    from bufferscope.results.result import Result

    begin = opening(inspection, connections(inspection.run, inspection.summary), explain_run(inspection.run))
    return build([Result([inspection.run])], path, step, opening=begin, stills=stills)


def _document(inspection: "Inspection") -> dict[str, Any]:
    from bufferscope.analysis.explanation import explain_run
    from bufferscope.cli.documents import run_document
    from bufferscope.interop.inspection.connections import connections, document

    summary = {key: value for key, value in inspection.summary.items() if key not in ("tables", "flows")}
    return {
        "experiment": inspection.run.experiment,
        "runs": [run_document(inspection.run)],
        "connections": document(connections(inspection.run, inspection.summary)),
        "explanation": explain_run(inspection.run).document(),
        "capture": summary,
    }


def _print(inspection: "Inspection") -> None:
    from rich.text import Text

    from bufferscope.analysis.explanation import explain_run
    from bufferscope.cli.explanations import print_explanation
    from bufferscope.cli.tables import print_warnings
    from bufferscope.cli.terminal import console
    from bufferscope.interop.inspection.connections import connections
    from bufferscope.interop.inspection.opening import next_command
    from bufferscope.results.result import Result

    console().print(Text(_about(inspection.summary)))
    if found := connections(inspection.run, inspection.summary):
        _print_connections(found)
    _print_quic(inspection.summary)
    if inspection.summary["pings"]:
        _print_pings(inspection)
    explained = explain_run(inspection.run)
    print_explanation(inspection.run, explained, many=False)
    print_warnings([Result([inspection.run])])
    say(f"Stored in {inspection.run.path}/")
    say(f"Next: {next_command(inspection, found, explained)[0]}")


def _show_only_quic(found: "OnlyQuicError", *, json: bool, quiet: bool) -> None:
    """Print what is known of connections of QUIC, of which no run is made."""
    from rich.text import Text

    from bufferscope.cli.documents import print_document
    from bufferscope.cli.terminal import console
    from bufferscope.interop.inspection.quic import HIDDEN
    from bufferscope.interop.inspection.telling import warnings

    if json:
        capture = {key: value for key, value in found.summary.items() if key not in ("tables", "flows")}
        print_document({"runs": [], "connections": [], "capture": capture})
    elif not quiet:
        console().print(Text(_about(found.summary)))
        _print_quic(found.summary)
        for warning in warnings(found.summary):
            console().print(Text(f"Warning: {warning}"))
        console().print(Text(f"No run is stored: {HIDDEN}, and there is neither a TCP connection nor a ping."))


def _print_quic(summary: "Summary") -> None:
    from rich.text import Text

    from bufferscope.cli.terminal import console, plain_table
    from bufferscope.interop.inspection.quic import quic_connections

    found = quic_connections(summary)
    if not found:
        return
    table = plain_table("Connections of QUIC")
    for heading in ("Client", "Server", "Version", "IDs"):
        table.add_column(heading, overflow="fold")
    for heading in ("kB up", "down", "Mbit/s up", "down", "RTT min", "median", "p95 (ms)"):
        table.add_column(heading, justify="right")
    for each in found[:MOST_ROWS]:
        ids = " / ".join(ids[0] if ids else "-" for ids in each.ids)
        numbers = [*each.kb, *each.mbit, *(each.rtt_ms or (None, None, None))]
        cells = [_cell(number) for number in numbers]
        table.add_row(each.client, each.server, each.version or "not seen", ids, *cells)
    console().print(table)
    largest = found[0]
    for which, rates in zip(("up", "down"), largest.rates_mbit, strict=True):
        told = ", ".join(f"{rate:.3g}" for rate in rates)
        console().print(Text(f"Mbit/s {which}, {largest.client}, each {largest.interval_s:.3g} s: {told}"))
    for why in dict.fromkeys(each.why for each in found if each.why):
        console().print(Text(f"No round-trip time of {_whose(found, why)}: {why}."))


def _whose(found: "list[QuicConnection]", why: str) -> str:
    clients = [each.client for each in found if each.why == why]
    return clients[0] if len(clients) == 1 else f"{len(clients)} connections"


def _about(summary: "Summary") -> str:
    from bufferscope.interop.inspection.observing import duration_ns
    from bufferscope.interop.inspection.telling import point_name

    counts = summary["counts"]
    points = "; ".join(
        f"{point_name(point)} ({point['link_name'] or 'link type ' + str(point['link_type'])}, "
        f"{point['packets']:,} packets)"
        for point in summary["places"]
    )
    return f"{counts['packets']:,} packets in {duration_ns(summary) / 1e9:.3g} s, captured at {points}"


def _print_connections(found: "list[Connection]") -> None:
    from bufferscope.cli.terminal import console, plain_table

    table = plain_table("Connections, by direction of the data")
    for heading in ("Flow", "From", "To"):
        table.add_column(heading, overflow="fold")
    for heading in (
        "kB",
        "Mbit/s",
        "RTT min",
        "median",
        "p95 (ms)",
        "RTT from",
        "In flight (kB)",
        "CE marks",
        "Sent again",
    ):
        table.add_column(heading, justify="right")
    before = ("delivered_kb", "goodput_mbit", "rtt_min_ms", "rtt_median_ms", "rtt_p95_ms")
    after = ("inflight_max_kb", "marks")
    for each in found[:MOST_ROWS]:
        again = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in each.retransmissions.items())
        numbers, more = ([_cell(each.facts[name]) for name in names] for names in (before, after))
        source = each.round_trips.source if each.round_trips else "-"
        table.add_row(each.flow, each.sender, each.receiver, *numbers, source, *more, again or "0")
    console().print(table)
    if (hidden := len(found) - MOST_ROWS) > 0:
        print(f"Connections not shown: {hidden}. --json has all of them.")


def _cell(value: float | None) -> str:
    from bufferscope.cli.tables import number

    return "-" if value is None else number(value)


def _print_pings(inspection: "Inspection") -> None:
    from bufferscope.cli.tables import print_rows

    rows = []
    for ping in inspection.summary["pings"]:
        lost = ping["requests"] - ping["answered"] - ping["unknown"]
        counts = [str(ping["requests"]), str(lost)]
        rows.append([ping["name"], ping["from"], ping["to"], *counts, *_times(inspection, ping["name"])])
    print_rows("Pings", ["Ping", "From", "To", "Requests", "Lost", "RTT min", "median", "p95 (ms)"], rows)


def _times(inspection: "Inspection", ping: str) -> list[str]:
    """The least, the median and the 95th percentile of a ping's round-trip times."""
    import numpy as np

    known = inspection.run.probes.filter(probe=ping)["rtt_ns"].drop_nulls().to_numpy() / MS
    return [f"{value:.4g}" for value in np.quantile(known, (0, 0.5, 0.95))] if known.size else ["-"] * 3
