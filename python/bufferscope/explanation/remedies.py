"""What could help against a cause, as changes of an experiment's keys."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bufferscope.explanation.diagnosis import Diagnosis
from bufferscope.explanation.evidence import Evidence
from bufferscope.explanation.limits import Limit
from bufferscope.explanation.places import port_settings, port_side
from bufferscope.explanation.queue_words import limit_packets
from bufferscope.explanation.standing import FRAME_BYTES, Standing
from bufferscope.explanation.statement import Cause

MANAGERS = ("fq_codel", "cake", "codel", "pie")
SHAPED = 0.95
"""A shaper in front of a queue that cannot be managed sends this share of its rate (docs/dark-buffers.md)."""
LINUX_MEMORY: Mapping[Limit, tuple[str, str]] = {
    Limit.RECEIVER: ("rmem_max", "6mb"),
    Limit.BUFFER: ("wmem_max", "4mb"),
}
"""The settings that bound the windows, with Linux' defaults."""
MOST_PACKETS = 10_000_000
"""The largest limit that an experiment file takes."""


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
        yield from _of_flow(found, diagnosis)


def _of_queue(found: Evidence, diagnosis: Diagnosis, queue: Standing) -> Iterator[Remedy]:
    scenario = found.run.scenario
    link, side = port_side(scenario, queue.port)
    key = f"link.{link}.{side}.queue"
    settings = port_settings(scenario, queue.port)
    own = settings["queue"]
    if diagnosis.cause is Cause.SHAPER:
        rate = f"{round(queue.service_bps)}bit"
        if own["qdisc"] == "tbf":
            for name in ("fq_codel", "codel", "pie"):
                yield Remedy(f"{name} in the shaper", {f"{key}.inner": {"qdisc": name}})
        yield Remedy(f"cake at the shaper's rate in {queue.port}", {key: {"qdisc": "cake", "bandwidth": rate}})
        yield Remedy("no shaper, but fq_codel at the wire", {key: {"qdisc": "fq_codel"}})
        return
    for name in MANAGERS:
        yield Remedy(f"{name} in {queue.port}", {key: {"qdisc": name}})
    needed = limit_packets(found, queue)
    if needed is not None:
        limit = f"{min(needed, MOST_PACKETS)}p"
        yield Remedy(f"a limit of {needed} packets in {queue.port}", {key: {"qdisc": "pfifo", "limit": limit}})
    if "ring" in settings:
        ring = {"size": f"{settings['ring']['size_packets']}p", "bql": True}
        yield Remedy("byte queue limits alone", {f"link.{link}.{side}.ring": ring})
        yield Remedy("byte queue limits and fq_codel", {f"link.{link}.{side}.ring": ring, key: {"qdisc": "fq_codel"}})
    if not settings.get("variation") and "boost" not in settings and len(settings["rate"] or ()) == 1:
        rate = f"{round(SHAPED * queue.rate_bps)}bit"
        yield Remedy("shaping to 95 % of the wire's rate with cake", {key: {"qdisc": "cake", "bandwidth": rate}})


def _of_flow(found: Evidence, diagnosis: Diagnosis) -> Iterator[Remedy]:
    main = diagnosis.main
    assert main
    entry = main.sender.way.entry
    nodes = found.run.scenario["nodes"]
    if main.limit in LINUX_MEMORY:
        setting, value = LINUX_MEMORY[main.limit]
        host = nodes[entry["to" if main.limit is Limit.RECEIVER else "from"]]["name"]
        yield Remedy(f"{setting} of {host} as Linux has it, {value}", {f"host.{host}.tcp.{setting}": value})
    name = entry["name"].split(".")[0]
    if main.limit is Limit.FIXED:
        yield Remedy("cubic instead of a fixed window", {f"traffic.{name}.congestion": "cubic"})
    if main.limit is Limit.LOSS:
        yield Remedy("bbr, which does not take each loss for congestion", {f"traffic.{name}.congestion": "bbr"})
    if main.limit is Limit.QUEUE and main.port:
        link, side = port_side(found.run.scenario, main.port)
        packets = max(2, round(main.sender.way.held_bytes / FRAME_BYTES))
        key = f"link.{link}.{side}.queue"
        yield Remedy(f"a limit of {packets} packets in {main.port}", {key: {"qdisc": "pfifo", "limit": f"{packets}p"}})
        yield Remedy(f"fq_codel in {main.port}", {key: {"qdisc": "fq_codel"}})
