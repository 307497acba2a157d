"""How to set Linux's queueing disciplines for a line: `tc`'s arguments, with the reason for each."""

import json
from dataclasses import dataclass

from bufferscope import _core
from bufferscope.studies.choice.judging import DEVICE
from bufferscope.studies.sizing.line import SizedLine

__all__ = ["AQMS", "DEVICE", "QueueSetting", "fifo", "settings"]

AQMS = ("fq_codel", "cake", "codel", "pie")
"""The disciplines that are recommended for a line, in this order."""
INTERVAL_NS = 100_000_000
"""CoDel's default interval."""
FITS_NS = (10_000_000, 300_000_000)
"""The round trips for which RFC 8289 finds an interval of 100 ms excellent."""
TARGET_SHARE = 0.05
"""The target in intervals (RFC 8289: 5 to 10 %)."""


@dataclass(frozen=True)
class QueueSetting:
    """A discipline set for a line."""

    name: str
    """The discipline's name."""
    queue: dict[str, object]
    """As an experiment file writes it."""
    reason: str
    """Why it is set like this."""


def settings(line: SizedLine) -> list[QueueSetting]:
    """Each active queue management, set for the line."""
    return [_codel(line, "fq_codel"), _cake(line), _codel(line, "codel"), _pie(line)]


def fifo(line: SizedLine, packets: int) -> list[QueueSetting]:
    """Tail drop of this many full packets, limited in packets and in bytes."""
    size = packets * line.frame_bytes
    return [
        QueueSetting("pfifo", {"qdisc": "pfifo", "limit": f"{packets}p"}, "counts packets, whatever their size"),
        QueueSetting("bfifo", {"qdisc": "bfifo", "limit": f"{size}b"}, "counts bytes, so its longest delay is fixed"),
    ]


def default_limit(name: str) -> int:
    """A discipline's own limit in packets, as the schema of experiment files has it."""
    return _limits()[name]


def _codel(line: SizedLine, name: str) -> QueueSetting:
    low, high = FITS_NS
    queue: dict[str, object] = {"qdisc": name}
    why = []
    interval_ns = INTERVAL_NS if low <= line.rtt_ns <= high else line.rtt_ns
    target_ns = max(TARGET_SHARE * interval_ns, line.packet_s * 1e9)
    if interval_ns != INTERVAL_NS:
        queue["interval"] = _microseconds(interval_ns)
        why.append("interval: the round trip, which is outside the 10 to 300 ms that the default suits")
    if target_ns != TARGET_SHARE * INTERVAL_NS:
        queue["target"] = _microseconds(target_ns)
        is_packet = target_ns > TARGET_SHARE * interval_ns
        why.append("target: the time of one full packet" if is_packet else "target: 5 % of the interval")
    _raise_limit(line, name, queue, why)
    return QueueSetting(name, queue, "; ".join(why) or "the defaults suit (RFC 8289: interval 100 ms, target 5 ms)")


def _cake(line: SizedLine) -> QueueSetting:
    low, high = FITS_NS
    if low <= line.rtt_ns <= high:
        return QueueSetting("cake", {"qdisc": "cake"}, "the default rtt of 100 ms suits")
    return QueueSetting("cake", {"qdisc": "cake", "rtt": _microseconds(line.rtt_ns)}, "rtt: the round trip")


def _pie(line: SizedLine) -> QueueSetting:
    queue: dict[str, object] = {"qdisc": "pie"}
    why: list[str] = []
    _raise_limit(line, "pie", queue, why)
    return QueueSetting("pie", queue, "; ".join(why) or "the default suits (RFC 8033: target 15 ms)")


def _raise_limit(line: SizedLine, name: str, queue: dict[str, object], why: list[str]) -> None:
    """A limit of at least the bandwidth-delay product, so that the discipline decides and not its limit."""
    needed = line.packets(line.bdp_bytes)
    if needed > default_limit(name):
        queue["limit"] = f"{needed}p"
        why.append(f"limit: the BDP, above the default of {default_limit(name)} packets")


def _limits() -> dict[str, int]:
    variants = json.loads(_core.schema())["$defs"]["Queue"]["oneOf"]
    found = {}
    for variant in variants:
        limit = str(variant["properties"].get("limit", {}).get("default", ""))
        if limit.endswith("p") and limit[:-1].isdigit():
            found[variant["properties"]["qdisc"]["const"]] = int(limit[:-1])
    return found


def _microseconds(nanoseconds: float) -> str:
    return f"{max(1, round(nanoseconds / 1000))}us"
