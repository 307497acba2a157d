"""What could help against a cause, as changes of an experiment's keys. Only what fits the link is tried.

Not tried are byte queue limits on a radio channel, shaping on a radio channel or where the rate varies, a limit of the
rule's length if the queue is already as short, and what a port already has (`cures` leaves out experiments that stay
the same).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bufferscope.analysis.explanation.diagnosis import Diagnosis
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.limits import Limit, LimitedFlow
from bufferscope.analysis.explanation.port_facts import does_nothing, port_settings, port_side, rate_varies, wifi_name
from bufferscope.analysis.explanation.queue_words import limit_packets
from bufferscope.analysis.explanation.standing import FRAME_BYTES, StandingQueue
from bufferscope.analysis.explanation.statement import Cause
from bufferscope.model.scenario import Wifi

MANAGERS = ("fq_codel", "cake", "codel", "pie")
"""The disciplines to try, those that suit most links first: all need no parameter to suit the link."""
SHAPED = 0.95
"""A shaper in front of a queue that cannot be managed sends this share of its rate (docs/dark-buffers.md)."""
LINUX_MEMORY: Mapping[Limit, tuple[str, int]] = {
    Limit.RECEIVER: ("rmem_max", 6),
    Limit.BUFFER: ("wmem_max", 4),
}
"""The settings that bound the windows, with Linux' defaults in MB (of 2^20 bytes)."""
MB = 2**20
MEMORY_OF_WINDOW = 4
"""The buffer in BDPs: Linux gives half of it to the window, and a window of two BDPs fills the path."""
MOST_PACKETS = 10_000_000
"""The largest limit that an experiment file takes."""
FEWEST_PACKETS = 2


@dataclass(frozen=True)
class Remedy:
    """Something to try."""

    name: str
    changes: Mapping[str, object]
    """Values by the keys' paths, as for `--set`."""


def remedies(found: Evidence, diagnosis: Diagnosis) -> Iterator[Remedy]:
    """What could help against the main cause; nothing against an application or where nothing is wrong."""
    if diagnosis.queue:
        yield from _of_queue(found, diagnosis, diagnosis.queue)
    elif diagnosis.main:
        yield from _of_flow(found, diagnosis.main)
    elif diagnosis.harm and diagnosis.harm.port and diagnosis.cause is Cause.SHALLOW:
        crossing = [each.way.held_bytes for each in found.crossing(diagnosis.harm.port)]
        yield from _of_short_queue(found, diagnosis.harm.port, max(crossing, default=0.0))


def _of_queue(found: Evidence, diagnosis: Diagnosis, queue: StandingQueue) -> Iterator[Remedy]:
    if wifi := wifi_name(found.run.scenario, queue.port):
        yield from _on_air(found, diagnosis, queue, wifi)
    elif diagnosis.cause is Cause.SHAPER:
        yield from _of_shaper(found, queue)
    else:
        if diagnosis.cause is Cause.QUEUE:
            yield from _managers(found, queue.port, _queue_key(found, queue.port))
            yield from _shorter(found, queue)
        yield from _of_ring(found, queue)
        if not rate_varies(found.run.scenario, queue.port):
            shaped = {"qdisc": "cake", "bandwidth": f"{round(SHAPED * queue.rate_bps)}bit"}
            name = "shaping to 95 % of the wire's rate with cake"
            yield Remedy(name, {_queue_key(found, queue.port): shaped})


def _queue_key(found: Evidence, port: str) -> str:
    return f"{_key(found, port)}.queue"


def _key(found: Evidence, port: str) -> str:
    return "link.{}.{}".format(*port_side(found.run.scenario, port))


def _managers(found: Evidence, port: str, key: str) -> Iterator[Remedy]:
    own = found.ports[port].queue["qdisc"]
    for name in MANAGERS:
        defaults = " with its defaults" if name == own else ""
        yield Remedy(f"{name}{defaults} in {port}", {key: {"qdisc": name}})


def _shorter(found: Evidence, queue: StandingQueue) -> Iterator[Remedy]:
    """Tail drop of the length of the rule, if the queue may be longer now."""
    needed, port = limit_packets(found, queue), found.ports[queue.port]
    limit_bytes = port.limit_bytes
    limit = port.limit_packets or (limit_bytes and limit_bytes / FRAME_BYTES) or math.inf
    if needed is None or limit <= needed:
        return
    what = "a limit" if does_nothing(port.queue) else "tail drop"
    changes = {"qdisc": "pfifo", "limit": f"{min(needed, MOST_PACKETS)}p"}
    yield Remedy(f"{what} of {needed} packets in {queue.port}", {_queue_key(found, queue.port): changes})


def _of_ring(found: Evidence, queue: StandingQueue) -> Iterator[Remedy]:
    """Byte queue limits, if the port has a ring and not them."""
    settings = port_settings(found.run.scenario, queue.port)
    if "ring" not in settings or "bql" in settings["ring"]:
        return
    limits, key = {f"{_key(found, queue.port)}.ring.bql": True}, _queue_key(found, queue.port)
    yield Remedy("byte queue limits alone", limits)
    if does_nothing(settings["queue"]):
        yield Remedy("byte queue limits and fq_codel", {**limits, key: {"qdisc": "fq_codel"}})


def _of_shaper(found: Evidence, queue: StandingQueue) -> Iterator[Remedy]:
    key, own = _queue_key(found, queue.port), found.ports[queue.port].queue
    if own["qdisc"] == "tbf":
        for name in ("fq_codel", "codel", "pie"):
            yield Remedy(f"{name} in the shaper", {f"{key}.inner": {"qdisc": name}})
    if own["qdisc"] != "cake":
        shaped = {"qdisc": "cake", "bandwidth": f"{round(queue.service_bps)}bit"}
        yield Remedy(f"cake at the shaper's rate in {queue.port}", {key: shaped})
    yield Remedy("no shaper, but fq_codel at the wire", {key: {"qdisc": "fq_codel"}})


def _on_air(found: Evidence, diagnosis: Diagnosis, queue: StandingQueue, name: str) -> Iterator[Remedy]:
    """On Wi-Fi: queues for each station in the driver, or an AQM above the driver."""
    scenario = found.run.scenario
    (wifi,) = [each for each in scenario.get("wifi", ()) if each["name"] == name]
    is_plain = wifi["queueing"]["kind"] == "fifo"
    if is_plain:
        stations = {f"wifi.{name}.queueing": {"kind": "mac80211"}}
        yield Remedy("queues for each station in the driver (mac80211)", stations)
    if diagnosis.cause is Cause.QUEUE:
        yield from _managers(found, queue.port, _queue_on_air(found, queue.port, wifi, is_plain))


def _queue_on_air(found: Evidence, port: str, wifi: Wifi, is_plain: bool) -> str:
    """The key of a port's discipline: below it, an old driver has one interface for all stations."""
    is_shared = is_plain and found.ports[port].sender == found.run.scenario["nodes"][wifi["access_point"]]["name"]
    return f"wifi.{wifi['name']}.queueing.queue" if is_shared else _queue_key(found, port)


def _of_flow(found: Evidence, main: LimitedFlow) -> Iterator[Remedy]:
    name = main.sender.way.entry["name"].split(".")[0]
    if main.limit in LINUX_MEMORY:
        yield _memory(found, main)
    elif main.limit is Limit.FIXED:
        yield Remedy("cubic instead of a fixed window", {f"traffic.{name}.congestion": "cubic"})
    elif main.limit is Limit.LOSS:
        bbr = "bbr, which does not take each loss for congestion"
        yield Remedy(bbr, {f"traffic.{name}.congestion": "bbr"})
    elif main.limit is Limit.QUEUE and main.port:
        yield from _of_short_queue(found, main.port, main.sender.way.held_bytes)


def _memory(found: Evidence, main: LimitedFlow) -> Remedy:
    """Linux' default for the buffer that is too small; more than that if it already is Linux' default."""
    setting, linux_mb = LINUX_MEMORY[main.limit]
    entry = main.sender.way.entry
    node = found.run.scenario["nodes"][entry["to" if main.limit is Limit.RECEIVER else "from"]]
    own_bytes = node["tcp"]["rmem_max_bytes" if setting == "rmem_max" else "wmem_max_bytes"]
    key = f"host.{node['name']}.tcp.{setting}"
    if own_bytes < linux_mb * MB:
        return Remedy(f"{setting} of {node['name']} as Linux has it, {linux_mb}mb", {key: f"{linux_mb}mb"})
    wanted_mb = math.ceil(max(2 * own_bytes, MEMORY_OF_WINDOW * main.sender.way.held_bytes) / MB)
    return Remedy(f"{setting} of {node['name']} at {wanted_mb}mb", {key: f"{wanted_mb}mb"})


def _of_short_queue(found: Evidence, port: str, held_bytes: float) -> Iterator[Remedy]:
    """A longer queue, if it is shorter than the BDP, or flow queueing."""
    if wifi_name(found.run.scenario, port):
        return
    packets, own = max(FEWEST_PACKETS, round(held_bytes / FRAME_BYTES)), found.ports[port]
    key = _queue_key(found, port)
    if own.limit_packets is None or own.limit_packets < packets:
        yield Remedy(f"a limit of {packets} packets in {port}", {key: {"qdisc": "pfifo", "limit": f"{packets}p"}})
    yield Remedy(f"fq_codel in {port}", {key: {"qdisc": "fq_codel"}})
