"""The tables of a live measurement, from what it observed. Times begin with the first observation."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from bufferscope.base.errors import printable
from bufferscope.engines.live.observations import Echo, LocalSample, Observations, ObservedPhase
from bufferscope.interop.live.names import ECHOES, PORTS, RECEIVED, WAYS, load_name, tcp_probe
from bufferscope.store import live, tables
from bufferscope.store.verdict import Direction

if TYPE_CHECKING:
    import polars as pl

US = 1000


def origin_ns(observations: Observations) -> int:
    """The time of the first observation."""
    return min(_times(observations), default=0)


def duration_ns(observations: Observations) -> int:
    """From the first observation to the last."""
    return max(_times(observations), default=0) - origin_ns(observations)


def alone(phase: ObservedPhase) -> Observations:
    """A phase as observations of its own."""
    return {"phases": [phase], "ends": {"client": {}, "server": {}}}


def frames(observations: Observations) -> "dict[str, pl.DataFrame]":
    """The tables by their names; those without rows are left out."""
    import polars as pl

    begin = origin_ns(observations)
    rows = {
        "probes": [*_echoes(observations), *tcp_probes(observations)],
        "one_way": list(_one_way(observations)),
        "flows": [*_flows(observations), *_received(observations)],
        "queues": list(queues(observations)),
        "hops": list(hops(observations)),
        "stages": list(stages(observations)),
    }
    made = {}
    for table, found in rows.items():
        if found:
            time = "sent_ns" if table == "probes" else "t_ns"
            columns = {column: kind for column, kind in tables.columns(table).items() if column in found[0]}
            frame = pl.DataFrame([[row[name] for name in columns] for row in found], schema=columns, orient="row")
            made[table] = frame.with_columns(pl.col(time) - begin).sort(time, maintain_order=True)
    return made


def floods(observations: Observations) -> list[live.Flood]:
    """The floods, whose times count from the first observation."""
    begin = origin_ns(observations)
    return [
        {
            **flood,
            "start_ns": flood["start_ns"] - begin,
            "end_ns": flood["end_ns"] - begin,
            "rtts": [[_later(t_ns, -begin), rtt_ns] for t_ns, rtt_ns in flood["rtts"]],
            "received": [[t_ns - begin, size] for t_ns, size in flood["received"]],
        }
        for flood in observations.get("floods", ())
    ]


def _later(t_ns: int | None, by_ns: int) -> int | None:
    return None if t_ns is None else t_ns + by_ns


def phases(observations: Observations) -> list[live.PhaseSummary]:
    """The phases in the order of time, with what the tables have no column for."""
    begin = origin_ns(observations)
    numbers = {id(echo): seq for seq, echo in enumerate(_in_order(observations))}
    return [
        _phase(phase, begin, numbers) for phase in sorted(observations["phases"], key=lambda each: each["start_ns"])
    ]


def _phase(phase: ObservedPhase, begin: int, numbers: Mapping[int, int]) -> live.PhaseSummary:
    found: live.PhaseSummary = {
        "kind": phase["kind"],
        "start_ns": phase["start_ns"] - begin,
        "end_ns": phase["end_ns"] - begin,
        "levelled": phase.get("levelled"),
    }
    if failure := phase.get("load_failure"):
        found["load_failure"] = printable(failure)
    if lost := sorted(numbers[id(echo)] for echo in phase.get("echoes", ()) if echo.get("lost") == "up"):
        found["lost_up"] = ranges(lost)
    if busy := _processors(phase.get("local", ()), begin):
        found["processors"] = busy
    return found


def ranges(numbers: Sequence[int]) -> str:
    """Numbers in ascending order as ranges.

    >>> ranges([3, 4, 5, 9])
    '3-5 9'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _processors(samples: Sequence[LocalSample], begin: int) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for each in samples:
        busy, softirq = each.get("cpu_busy"), each.get("softirq")
        shares = "/".join("" if share is None else f"{share:.6g}" for share in (busy, softirq))
        found.setdefault(each["end"], []).append(f"{each['t_ns'] - begin}/{shares}")
    return {end: " ".join(values) for end, values in found.items()}


def _times(observations: Observations) -> Iterator[int]:
    for phase in observations["phases"]:
        yield from (phase["start_ns"], phase["end_ns"])
        lists: list[Any] = [value for value in phase.values() if isinstance(value, list)]
        yield from (sample["t_ns"] for sample in chain.from_iterable(lists))


def _in_order(observations: Observations) -> list[Echo]:
    """The echoes in the order of sending; their places are their `seq`."""
    every = (echo for phase in observations["phases"] for echo in phase.get("echoes", ()))
    return sorted(every, key=lambda echo: echo["t_ns"])


def _echoes(observations: Observations) -> Iterator[dict[str, Any]]:
    for seq, echo in enumerate(_in_order(observations)):
        yield {"probe": ECHOES, "seq": seq, "sent_ns": echo["t_ns"], "rtt_ns": echo.get("rtt_ns")}


def tcp_probes(observations: Observations) -> Iterator[dict[str, Any]]:
    """The probes over TCP."""
    counts: dict[str, int] = {}
    for phase in observations["phases"]:
        for each in phase.get("tcp_probes", ()):
            name = tcp_probe(each["kind"], each.get("direction"))
            counts[name] = seq = counts.get(name, -1) + 1
            yield {"probe": name, "seq": seq, "sent_ns": each["t_ns"], "rtt_ns": each.get("rtt_ns")}


def _one_way(observations: Observations) -> Iterator[dict[str, Any]]:
    """How much longer each echo took than the fastest, each way by the clocks of both ends."""
    echoes = _in_order(observations)
    changes = {
        "up": [(echo["t_ns"], echo.get("up_ns")) for echo in echoes],
        "down": [(echo["t_ns"], echo.get("down_ns")) for echo in echoes],
    }
    for direction, way in WAYS.items():
        known = [(t_ns, value) for t_ns, value in changes[direction] if value is not None]
        least = min((value for _, value in known), default=0)
        for t_ns, value in known:
            yield {"t_ns": t_ns, "flow": ECHOES, "way": way, "change_ns": value - least}


def _flows(observations: Observations) -> Iterator[dict[str, Any]]:
    for phase in observations["phases"]:
        numbers: dict[tuple[Direction, int], int] = {}
        for each in phase.get("flows", ()):
            key = each["direction"], each["flow"]
            before = sum(direction == each["direction"] for direction, _ in numbers)
            number = numbers.setdefault(key, before + 1)
            yield {
                "t_ns": each["t_ns"],
                "flow": f"{load_name(phase['kind'], each['direction'])}/{number}",
                **{column: each.get(column) for column in ("srtt_ns", "min_rtt_ns", "cwnd_bytes", "notsent_bytes")},
                **{column: each.get(column) for column in ("retransmits", "delivered_bytes")},
                "delivered_ce_packets": each.get("delivered_ce"),
                "busy_ns": _in_ns(each.get("busy_us")),
                "rwnd_limited_ns": _in_ns(each.get("rwnd_limited_us")),
                "sndbuf_limited_ns": _in_ns(each.get("sndbuf_limited_us")),
            }


def _in_ns(time_us: int | None) -> int | None:
    return None if time_us is None else min(time_us * US, 2**63 - 1)


def _received(observations: Observations) -> Iterator[dict[str, Any]]:
    """What the receivers have counted, in the columns of `_flows`."""
    empty = dict.fromkeys(
        [
            *("srtt_ns", "min_rtt_ns", "cwnd_bytes", "notsent_bytes", "retransmits", "delivered_ce_packets"),
            *("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns"),
        ]
    )
    for phase in observations["phases"]:
        for each in phase.get("goodput", ()):
            name = RECEIVED + load_name(phase["kind"], each["direction"])
            yield {"t_ns": each["t_ns"], "flow": name, "delivered_bytes": each["bytes"], **empty}


def queues(observations: Observations) -> Iterator[dict[str, Any]]:
    """The queueing disciplines and rings of both ends."""
    for phase in observations["phases"]:
        for each in phase.get("local", ()):
            common = {"t_ns": each["t_ns"], "port": PORTS[each["end"]]}
            queued, drops, ring = each.get("qdisc_bytes"), each.get("qdisc_drops"), each.get("ring_bytes")
            if queued is not None or drops is not None:
                yield {**common, "layer": "qdisc", "bytes": queued, "dropped": drops, "inflight_bytes": None}
            if ring is not None:
                yield {**common, "layer": "ring", "bytes": ring, "dropped": None, "inflight_bytes": ring}


def hops(observations: Observations) -> Iterator[dict[str, Any]]:
    """The answers of the hops."""
    for phase in observations["phases"]:
        by_udp = ((each["end"], each) for each in phase.get("ladder", ()))
        by_tcp = ((live.OVER_TCP, each) for each in phase.get("tcp_ladder", ()))
        for ladder, each in chain(by_udp, by_tcp):
            yield {
                "t_ns": each["t_ns"],
                "ladder": ladder,
                "ttl": each["ttl"],
                "address": each.get("address"),
                "rtt_ns": each.get("rtt_ns"),
                "kind": each["kind"],
                "mpls": each.get("mpls", False),
            }


def stages(observations: Observations) -> Iterator[dict[str, Any]]:
    """The delays in the ends."""
    for phase in observations["phases"]:
        for each in phase.get("stages", ()):
            yield {key: each[key] for key in ("t_ns", "end", "stage", "delay_ns")}
