"""What a series of Flent is: a flow's rate, round trips, part of another series, computed of others, or none of these.

The names of series are free; tests choose them (`TCP upload BE`, `TCP cubic 2`, `Ping (ms) ICMP`). What measured a
series, and in which unit, is in `SERIES_META` (`RUNNER`, `UNITS`) of newer files; older ones have only the name.
Sources: Flent's `runners.py` and the files in `flent/tests`.
"""

import re
from enum import Enum

from bufferscope.interop.external_runs import traffic_name
from bufferscope.interop.importing.flent.file import TRANSFORMED, DataFile, Series

COMPUTED = ("avg", "sum", "totals", "fairness", "diff")
"""The last words of series that Flent computes of others."""
COMPUTING_RUNNERS = ("AverageRunner", "SmoothAverageRunner", "SumRunner", "DiffMinRunner", "FairnessRunner")
RATE_RUNNERS = ("NetperfDemoRunner", "IperfCsvRunner")
RATE_UNITS = ("mbits/s", "mbit/s", "bits/s", "bit/s")
ROUND_TRIP_RUNNERS = ("PingRunner", "IrttRunner", "UdpRttRunner", "NetperfDemoRunner")
OVER_UDP = ("IrttRunner", "UdpRttRunner")
_PROTOCOL = re.compile(r"(TCP|UDP)\b ?")
_WAY = re.compile(r"\b(?P<way>up|down)(?:load)?(?=$| |::)")
_PING = re.compile(r"Ping \(ms\) ?(?P<part>.*)")


class SeriesKind(Enum):
    """What is made of a series."""

    RATE = "a flow"
    ROUND_TRIPS = "probes"
    COMPUTED = "nothing: it repeats others"
    PART = "nothing of its own: it is one key of the raw values of another series"
    OTHER = "nothing"


def kind_of(series: Series, file: DataFile) -> SeriesKind:
    """What a series is."""
    if _is_part(series, file):
        return SeriesKind.PART
    if _is_computed(series):
        return SeriesKind.COMPUTED
    if _is_rate(series):
        return SeriesKind.RATE
    return SeriesKind.ROUND_TRIPS if _is_round_trip(series) else SeriesKind.OTHER


def base_of(name: str) -> tuple[str, str]:
    """The series of which `name` would be a part, and the key: `TCP upload::3::tcp_rtt` is `tcp_rtt` of the third."""
    base, _, key = name.rpartition("::")
    return base, key


def _is_part(series: Series, file: DataFile) -> bool:
    base, key = base_of(series.name)
    return bool(base) and not key.isdigit() and (key.startswith("tcp_") or base in file.names)


def _is_computed(series: Series) -> bool:
    if series.is_computed or series.runner in COMPUTING_RUNNERS:
        return True
    return not series.keys and series.name.split(" ")[-1] in COMPUTED


def _is_rate(series: Series) -> bool:
    """Whether its values are megabits per second of a flow; what a video player saw of one (`Dash`) is not.

    Of SCTP, bufferscope has no flows.
    """
    units = series.units.lower()
    if units and units not in RATE_UNITS:
        return False
    if series.runner in RATE_RUNNERS:
        return bool(units) and not series.name.startswith("SCTP")
    return not series.runner and "(ms)" not in series.name and _PROTOCOL.match(series.name) is not None


def _is_round_trip(series: Series) -> bool:
    """Whether its values are round-trip times in milliseconds.

    The time that a page took is not, and neither is the one-way delay that D-ITG measures of a call.
    """
    if series.units not in ("", "ms"):
        return False
    if series.runner:
        return series.runner in ROUND_TRIP_RUNNERS
    return _PING.fullmatch(series.name) is not None


def counts_transactions(series: Series, file: DataFile) -> bool:
    """Whether raw round trips are netperf's transactions per second (UDP_RR, TCP_RR), one after the other.

    Only netperf's values have the interval over which they were counted. Since version 4 Flent writes the milliseconds
    of UDP_RR, but goes on to write the transactions of TCP_RR.
    """
    return "dur" in series.keys and (file.version < TRANSFORMED or _over_tcp(series))


def counts_transactions_in_results(series: Series, file: DataFile) -> bool:
    """The same of its results: until version 3, all of them were transformed."""
    return file.version >= TRANSFORMED and _over_tcp(series)


def _over_tcp(series: Series) -> bool:
    return "TCP_RR" in series.command or series.name.startswith("Ping (ms) TCP")


def is_upload(series: Series, test: str) -> bool | None:
    """Whether a flow goes from the end where Flent runs to the other; None if nothing shows it."""
    if way := _WAY.search(series.name):
        return way["way"] == "up"
    if "TCP_MAERTS" in series.command:
        return False
    if "TCP_STREAM" in series.command or series.runner == "IperfCsvRunner":
        return True
    words = re.findall(r"up|down|dn", test)
    return words[0] == "up" if len(set(words)) == 1 else None


def protocol(series: Series) -> str:
    """`tcp` or `udp`."""
    over_udp = series.name.startswith("UDP") or (series.runner == "IperfCsvRunner" and "--udp" in series.command)
    return "udp" if over_udp else "tcp"


def over_udp(series: Series) -> bool:
    """Whether round trips were measured over UDP."""
    ping = _PING.fullmatch(series.name)
    return (
        series.runner in OVER_UDP or "UDP_RR" in series.command or (ping is not None and ping["part"].startswith("UDP"))
    )


def flow_name(series: Series, test: str, *, up: bool) -> str:
    """`rrul.up.be` for `TCP upload BE`; numbered streams, as in `TCP upload::3`, are flows of one entry."""
    part = _PROTOCOL.sub("", _WAY.sub("", series.name, count=1), count=1)
    part = re.sub(r"(^|::) *\d+$", "", part.strip()).strip(": ")
    way = "up" if up else "down"
    words = [*(["udp"] if protocol(series) == "udp" else []), *([traffic_name(part)] if part else [])]
    return ".".join([test, way, *words])


def probe_name(series: Series, test: str) -> str:
    """`rrul.udp.ef` for `Ping (ms) UDP EF`, and `rrul.ping` for `Ping (ms) ICMP`."""
    ping = _PING.fullmatch(series.name)
    if ping is None:
        return f"{test}.{traffic_name(series.name)}"
    words = ping["part"].split()
    if words[:1] == ["UDP"]:
        return ".".join([test, "udp", *([traffic_name(" ".join(words[1:]))] if words[1:] else [])])
    rest = words[1:] if words[:1] == ["ICMP"] else words
    return ".".join([test, "-".join(["ping", *([traffic_name(" ".join(rest))] if rest else [])])])
