"""What was captured, as an observed run.

The names of flows and pings come from the core: a flow is `<traffic>/<number>`, a ping `ping`, `ping-2`, ... An entry
of the traffic is made for each of these names. The ends are named after their addresses as long as these are few.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bufferscope import _core
from bufferscope.base.errors import InputError, printable
from bufferscope.engines import capture
from bufferscope.figures import NAMES
from bufferscope.interop.external_runs import Observation, TrafficEntry
from bufferscope.interop.inspection.clock import coarse
from bufferscope.interop.inspection.connections import connection_names
from bufferscope.interop.inspection.nodes import node_names
from bufferscope.interop.inspection.quic import OnlyQuicError, sentences
from bufferscope.interop.inspection.reading import Summary
from bufferscope.interop.inspection.telling import warnings
from bufferscope.store.metadata import SourceFile

MOST_HOSTS = 12
"""With more nodes, the ends are called `near` and `far`."""
NEAR, FAR = "near", "far"
FIGURES = {
    "flows": ("cwnd", "round_trips", "rtt_window", "goodput", "receive_window"),
    "pings": ("rtt", "rtt_cdf"),
}
CUT = "cut off within the headers"
NOT_IN_CAPTURES = ("transfers", "estimates")


def observation(name: str, summary: Summary, sources: Sequence[SourceFile], tick_ns: int | None = None) -> Observation:
    """The run that captures show. Raises `InputError` if they show no connection and no ping.

    `tick_ns` is the tick of the capture's clock if round trips are shorter.
    """
    entries = [*_flows(summary), *_pings(summary)]
    if not entries:
        raise _nothing(summary)
    entries, hosts = _named(entries)
    files = ", ".join(file["name"] for file in summary["files"])
    return Observation(
        name=name,
        title=f"Captured packets: {printable(files)}",
        engine=capture.ENGINE.name,
        tool="bufferscope inspect",
        version=_core.__version__,
        sources=sources,
        duration_ns=duration_ns(summary),
        traffic=entries,
        hosts=hosts,
        started=_moment(summary["first_ns"]),
        sample_interval_ns=summary["sample_interval_ns"],
        mss_bytes=summary["mss_bytes"] or _core.MSS_BYTES,
        not_measured=NOT_IN_CAPTURES,
        connections=connection_names(summary["flows"]),
        warnings=[*warnings(summary), *coarse(tick_ns)],
        figures=_figures(summary),
    )


def _named(entries: Sequence[TrafficEntry]) -> tuple[list[TrafficEntry], list[str]]:
    """Entries whose ends are addresses, with the names of nodes instead, and these nodes."""
    names = node_names((entry.sender, entry.receiver) for entry in entries)
    nodes = list(dict.fromkeys(node for pair in names.values() for node in pair))
    if len(nodes) > MOST_HOSTS:
        return [replace(entry, sender=NEAR, receiver=FAR) for entry in entries], [NEAR, FAR]
    ends = [names[entry.sender, entry.receiver] for entry in entries]
    return [
        replace(entry, sender=one, receiver=other) for entry, (one, other) in zip(entries, ends, strict=True)
    ], nodes


def _figures(summary: Summary) -> list[str]:
    return [figure for what, figures in FIGURES.items() if summary[what] for figure in figures if figure in NAMES]


def duration_ns(summary: Summary) -> int:
    """From the first packet to the last."""
    if summary["first_ns"] is None:
        return 0
    return int(summary["last_ns"] - summary["first_ns"])


def _flows(summary: Summary) -> list[TrafficEntry]:
    """An entry for all flows of data; the ends are those of the flow with the most of it."""
    if not summary["flows"]:
        return []
    largest = max(summary["flows"], key=lambda flow: flow["delivered_bytes"] or 0)
    name, sender, receiver = largest["name"], largest["from"]["address"], largest["to"]["address"]
    return [TrafficEntry(name.rpartition("/")[0], "tcp", sender, receiver, {"flows": summary["flows_recorded"]})]


def _pings(summary: Summary) -> list[TrafficEntry]:
    return [TrafficEntry(ping["name"], "ping", ping["from"], ping["to"]) for ping in summary["pings"]]


def _moment(first_ns: int | None) -> datetime | None:
    """The wall-clock time of the first packet, if it is one that a calendar has."""
    try:
        return None if first_ns is None else datetime.fromtimestamp(first_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _nothing(summary: Summary) -> InputError:
    found = _found_instead(summary)
    return OnlyQuicError("; ".join([found, *sentences(summary)]), summary) if summary["quic"] else InputError(found)


def _found_instead(summary: Summary) -> str:
    counts = summary["counts"]
    files = printable(", ".join(file["name"] for file in summary["files"]))
    if not counts["packets"]:
        return f"{files}: found no packets; needed: a TCP connection or a ping"
    kinds = {
        "of TCP": counts["tcp"],
        "of UDP": counts["udp"],
        "not of the chosen hosts and ports": counts["not_chosen"],
        "without a time": counts["without_time"],
        "captured more than once": counts["copies"],
        **counts["undecoded"],
    }
    hint = " (cut off: capture more of each packet, tcpdump -s 0)" if counts["undecoded"].get(CUT) else ""
    told = ", ".join(f"{number:,} {what}" for what, number in kinds.items() if number)
    looks = ", ".join(f"{number:,} seem to be {what}" for what, number in counts["guesses"].items())
    told += f"; of UDP, {looks}" if looks else ""
    packets = f"{counts['packets']:,} packets" if counts["packets"] > 1 else "one packet"
    kinds_told = told or "none of a known kind"
    return f"{files}: found {packets} ({kinds_told}); needed: data of a TCP connection, or a ping{hint}"
