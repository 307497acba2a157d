"""The table of what was found: a row for each flow of data, computed from the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bufferscope.interop.inspection.reading import Summary
from bufferscope.metrics.paths import BOTH, ECHO, FEWEST_ROUND_TRIPS, RECEIVER, SENDER, path_round_trips
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl

MS, KB, MBIT = 1e6, 1e3, 1e6
MOST_NAMED = 8
"""The most series that figures draw in a colour each; one of them is all other connections, if there are more."""


SERVICES = {
    20: "ftp",
    22: "ssh",
    25: "smtp",
    53: "dns",
    80: "http",
    143: "imap",
    443: "https",
    445: "smb",
    853: "dns",
    873: "rsync",
    993: "imap",
    2049: "nfs",
    5001: "iperf",
    5201: "iperf3",
    8080: "http",
    12865: "netperf",
}
"""Services by their ports, for the names of connections."""
HALVES = {
    RECEIVER: "from here to the receiver and back: the capture was made at the sender, or shows no more",
    SENDER: "from here to the sender and back: the capture was made at the receiver",
    BOTH: "to both ends and back: the capture was made between them",
}
"""Which half of the path the round-trip times of a flow are from."""


@dataclass(frozen=True)
class RoundTrips:
    """The round-trip times of a flow's path, in ms, and where they are from."""

    half: str
    """One of `HALVES`."""
    method: str
    """`acknowledgement` or `timestamp`."""
    count: int
    min_ms: float
    median_ms: float
    p95_ms: float

    @property
    def source(self) -> str:
        """The half and the method in a cell of a table, and the number of round trips if it is small.

        >>> RoundTrips("sender", "timestamp", 9, 40.0, 41.0, 42.0).source
        'sender, timestamps'
        >>> RoundTrips("sender", "acknowledgement", 2, 40.0, 41.0, 42.0).source
        'sender, only 2'
        """
        method = ", timestamps" if self.method == ECHO else ""
        return self.half + method + (f", only {self.count}" if self.count < FEWEST_ROUND_TRIPS else "")


@dataclass(frozen=True)
class Connection:
    """One direction of a connection that carried data."""

    flow: str
    name: str
    """What it is to a reader: the service and its host, as far as the ports tell."""
    sender: str
    """Address and port."""
    receiver: str
    facts: Mapping[str, float | None]
    """By names that end in their units; None: the capture does not show it."""
    round_trips: RoundTrips | None
    """None: the capture shows none."""
    retransmissions: Mapping[str, int]
    """Segments sent again, by kind; `spurious` counts those among them whose first copy had arrived."""


def connections(run: Run, summary: Summary) -> list[Connection]:
    """All flows of a run, those with the most data first."""
    windows = {row["flow"]: row["rwnd_bytes"] for row in _windows(run).iter_rows(named=True)}
    rtt = _round_trips(run)
    found = [
        Connection(
            flow["name"],
            connection_name(flow["from"], flow["to"]),
            _end(flow["from"]),
            _end(flow["to"]),
            _facts(flow, rtt.get(flow["name"]), windows.get(flow["name"])),
            rtt.get(flow["name"]),
            {kind: number for kind, number in flow["retransmissions"].items() if number},
        )
        for flow in summary["flows"]
    ]
    return sorted(found, key=lambda each: -(each.facts["delivered_kb"] or 0))


def document(found: Sequence[Connection]) -> list[dict[str, object]]:
    """Connections for `--json`."""
    return [
        {
            "flow": each.flow,
            "name": each.name,
            "from": each.sender,
            "to": each.receiver,
            **{name: None if value is None else round(value, 4) for name, value in each.facts.items()},
            "rtt_half": each.round_trips and each.round_trips.half,
            "rtt_method": each.round_trips and each.round_trips.method,
            "rtt_count": each.round_trips.count if each.round_trips else 0,
            "retransmissions": dict(each.retransmissions),
        }
        for each in found
    ]


def connection_name(sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> str:
    """A name for a direction of a connection. The end with the known port, or else the lower one, is the server.

    >>> connection_name({"address": "203.0.113.5", "port": 443}, {"address": "192.0.2.1", "port": 50000})
    'https from 203.0.113.5'
    >>> connection_name({"address": "2001:db8::1", "port": 40000}, {"address": "2001:db8:1::2", "port": 5201})
    'iperf3 to 2001:db8:1::2'
    """
    is_from = is_from_server(sender, receiver)
    server = sender if is_from else receiver
    service = SERVICES.get(server["port"], f"port {server['port']}")
    return f"{service} {'from' if is_from else 'to'} {server['address']}"


def connection_names(flows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Names of the connections with the most data, which figures draw in colours of their own; each name is used once.

    Connections with equal names get the other end's port as well, or else their flow's name.
    """
    most = MOST_NAMED if len(flows) <= MOST_NAMED else MOST_NAMED - 1
    shown = sorted(flows, key=lambda flow: -(flow["delivered_bytes"] or 0))[:most]
    names = {flow["name"]: connection_name(flow["from"], flow["to"]) for flow in shown}
    names = _distinct(names, {flow["name"]: _other_port(flow["from"], flow["to"]) for flow in shown})
    return _distinct(names, {flow: flow for flow in names})


def _distinct(names: Mapping[str, str], suffixes: Mapping[str, str]) -> dict[str, str]:
    """The names, with a suffix where several are equal."""
    written = list(names.values())
    return {flow: f"{name} ({suffixes[flow]})" if written.count(name) > 1 else name for flow, name in names.items()}


def _other_port(sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> str:
    """The port of the end that `connection_name` does not name."""
    other = receiver if is_from_server(sender, receiver) else sender
    return f"port {other['port']}"


def is_from_server(sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> bool:
    """Whether a direction of a connection comes from its server: the end with the known port, or else the lower one."""
    return (sender["port"] not in SERVICES, sender["port"]) < (receiver["port"] not in SERVICES, receiver["port"])


def _windows(run: Run) -> "pl.DataFrame":
    """The largest window that each flow's receiver advertised."""
    import polars as pl

    return run.flows.group_by("flow").agg(pl.col("rwnd_bytes").max())


def _round_trips(run: Run) -> dict[str, RoundTrips]:
    """Round-trip times of each flow's path."""
    import polars as pl

    rtt = pl.col("rtt_ns") / MS
    paths = path_round_trips(run.round_trips.lazy()).group_by("flow", "half", "method")
    found = paths.agg(
        count=pl.len(), min_ms=rtt.min(), median_ms=rtt.median(), p95_ms=rtt.quantile(0.95, "linear")
    ).collect()
    return {row.pop("flow"): RoundTrips(**row) for row in found.iter_rows(named=True)}


def _facts(flow: Mapping[str, Any], rtt: RoundTrips | None, window_bytes: int | None) -> dict[str, float | None]:
    delivered = flow["delivered_bytes"]
    lasted_ns = flow["last_ns"] - flow["first_ns"]
    # Elsewhere than at the sender, a part of what is in flight is not seen.
    sees_flight = rtt is None or rtt.half == RECEIVER
    return {
        "delivered_kb": _over(delivered, KB),
        "duration_s": lasted_ns / 1e9,
        "goodput_mbit": None if delivered is None or lasted_ns <= 0 else delivered * 8e9 / lasted_ns / MBIT,
        "rtt_min_ms": rtt and rtt.min_ms,
        "rtt_median_ms": rtt and rtt.median_ms,
        "rtt_p95_ms": rtt and rtt.p95_ms,
        "inflight_max_kb": _over(flow["largest_flight_bytes"] if sees_flight else None, KB),
        "window_max_kb": _over(window_bytes, KB),
        "marks": flow["ce_marks"],
    }


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _end(end: Mapping[str, Any]) -> str:
    address, port = end["address"], end["port"]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
