"""What a stored live measurement observed, put together from its tables and `run.json`: the inverse of `records`.

Two things are another's after that: one-way delays, of which only the changes mean something, begin with 0, and so do
times. A sample belongs to the last phase that had begun by then.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from bufferscope.base.errors import InputError
from bufferscope.engines.live.observations import Observations
from bufferscope.interop.live.names import ANY, ECHOES, PORTS, RECEIVED, WAYS, load_of
from bufferscope.store.live import OVER_TCP, LiveMeasurement, live_of
from bufferscope.store.run import BaseRun

if TYPE_CHECKING:
    import polars as pl

US = 1000
LISTS = ("echoes", "tcp_probes", "ladder", "tcp_ladder", "stages", "flows", "goodput", "local")


def observations(run: BaseRun) -> Observations:
    """What a live measurement observed. Raises `InputError` if the run is not a live measurement."""
    live = live_of(run.meta["summary"])
    if live is None:
        raise InputError(f"{run.id}: no live measurement; allowed: a run of `bufferscope measure`")
    phases: list[dict[str, Any]] = [
        {key: phase.get(key) for key in ("kind", "start_ns", "end_ns", "levelled", "load_failure")}
        | {name: [] for name in LISTS}
        for phase in live["phases"]
    ]
    begins = [phase["start_ns"] for phase in phases]
    for name, sample in _samples(run, live):
        if phases:
            phases[max(0, bisect_right(begins, sample["t_ns"]) - 1)][name].append(sample)
    floods = {"floods": live["floods"]} if "floods" in live else {}
    return cast(Observations, {"phases": phases, "ends": live["ends"], "parameters": live["parameters"], **floods})


def _samples(run: BaseRun, live: LiveMeasurement) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every sample with the name of its list."""
    for name, found in (
        ("echoes", _echoes(run, live)),
        ("tcp_probes", _tcp_probes(run)),
        ("ladder", _ladder(run, tcp=False)),
        ("tcp_ladder", _ladder(run, tcp=True)),
        ("stages", _rows(run.stages.select("t_ns", "end", "stage", "delay_ns"))),
        ("flows", _flows(run)),
        ("goodput", _goodput(run)),
        ("local", _local(run, live)),
    ):
        yield from ((name, each) for each in found)


def _rows(frame: "pl.DataFrame") -> Iterator[dict[str, Any]]:
    return frame.iter_rows(named=True)


def _echoes(run: BaseRun, live: LiveMeasurement) -> Iterator[dict[str, Any]]:
    import polars as pl

    lost_up = {seq for phase in live["phases"] for seq in _numbers(phase.get("lost_up", ""), run.probes.height)}
    changes = {
        direction: dict(run.one_way.filter(flow=ECHOES, way=way).select("t_ns", "change_ns").iter_rows())
        for direction, way in WAYS.items()
    }
    own = run.probes.filter(pl.col("probe") == ECHOES)
    for seq, t_ns, rtt_ns in own.select("seq", "sent_ns", "rtt_ns").iter_rows():
        up_ns, down_ns = changes["up"].get(t_ns), changes["down"].get(t_ns)
        lost = None
        if rtt_ns is None:
            lost = "down" if up_ns is not None else "up" if seq in lost_up else "unknown"
        yield {"t_ns": t_ns, "rtt_ns": rtt_ns, "up_ns": up_ns, "down_ns": down_ns, "lost": lost}


def _numbers(text: str, most: int) -> Iterator[int]:
    """The inverse of `records.ranges`, for numbers below `most`."""
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), min(int(last or first) + 1, most))


def _tcp_probes(run: BaseRun) -> Iterator[dict[str, Any]]:
    for name, t_ns, rtt_ns in run.probes.select("probe", "sent_ns", "rtt_ns").iter_rows():
        kind, _, direction = name.partition("/")
        if direction:
            yield {
                "t_ns": t_ns,
                "kind": kind,
                "direction": None if direction == ANY else direction,
                "rtt_ns": rtt_ns,
            }


def _ladder(run: BaseRun, *, tcp: bool) -> Iterator[dict[str, Any]]:
    for row in _rows(run.hops):
        if (row["ladder"] == OVER_TCP) == tcp:
            keys = ("t_ns", "ttl", "address", "rtt_ns", "kind")
            end = "client" if tcp else row["ladder"]
            yield {**{key: row[key] for key in keys}, "end": end, "mpls": bool(row["mpls"])}


def _flows(run: BaseRun) -> Iterator[dict[str, Any]]:
    import polars as pl

    for row in _rows(run.flows.filter(~pl.col("flow").str.starts_with(RECEIVED))):
        name, _, number = row["flow"].rpartition("/")
        counted = {
            **{key: row[key] for key in ("srtt_ns", "min_rtt_ns", "cwnd_bytes", "notsent_bytes", "retransmits")},
            "delivered_bytes": row["delivered_bytes"],
            "delivered_ce": row["delivered_ce_packets"],
            **{f"{key}_us": _in_us(row[f"{key}_ns"]) for key in ("busy", "rwnd_limited", "sndbuf_limited")},
        }
        known = {key: value for key, value in counted.items() if value is not None}
        yield {"t_ns": row["t_ns"], "direction": load_of(name), "flow": int(number), **known}


def _in_us(time_ns: int | None) -> int | None:
    return None if time_ns is None else time_ns // US


def _goodput(run: BaseRun) -> Iterator[dict[str, Any]]:
    import polars as pl

    own = run.flows.filter(pl.col("flow").str.starts_with(RECEIVED))
    for t_ns, flow, received in own.select("t_ns", "flow", "delivered_bytes").iter_rows():
        yield {"t_ns": t_ns, "direction": load_of(flow.removeprefix(RECEIVED)), "bytes": received}


def _local(run: BaseRun, live: LiveMeasurement) -> Iterator[dict[str, Any]]:
    import polars as pl

    ends = {port: end for end, port in PORTS.items()}
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for row in _rows(run.queues.filter(pl.col("port").is_in(list(ends)))):
        sample = found.setdefault((row["t_ns"], ends[row["port"]]), {})
        if row["layer"] == "ring":
            sample["ring_bytes"] = row["inflight_bytes"]
        else:
            sample |= {"qdisc_bytes": row["bytes"], "qdisc_drops": row["dropped"]}
    for phase in live["phases"]:
        for end, series in phase.get("processors", {}).items():
            for text in series.split():
                time_ns, busy, softirq = text.split("/")
                found.setdefault((int(time_ns), end), {}).update(cpu_busy=_share(busy), softirq=_share(softirq))
    for (t_ns, end), sample in sorted(found.items(), key=lambda each: each[0]):
        yield {"t_ns": t_ns, "end": end, **sample}


def _share(text: str) -> float | None:
    return float(text) if text else None
