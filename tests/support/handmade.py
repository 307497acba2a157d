"""Runs made by hand: a scenario and records small enough that every metric is known by arithmetic.

Two hosts and a router, `h1 - r1 - h2`; the access link has no rate, the bottleneck 10 Mbit/s each way. `HandmadeRun`
has the shape that metrics and figures read; `write` puts it into a run directory as the engines do.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from bufferscope.model.network import ports
from bufferscope.store import FORMAT
from bufferscope.store.partition import RunFacts
from bufferscope.store.writing import write_metadata

MS = 1_000_000
SECOND = 1_000_000_000
MSS = 1448

SCHEMAS: dict[str, dict[str, type[pl.DataType]]] = {
    "probes": {"probe": pl.String, "seq": pl.Int64, "sent_ns": pl.Int64, "rtt_ns": pl.Int64,
               "owd_up_ns": pl.Int64, "owd_down_ns": pl.Int64},
    "flows": {"t_ns": pl.Int64, "flow": pl.String, "cwnd_bytes": pl.Int64, "ssthresh_bytes": pl.Int64,
              "inflight_bytes": pl.Int64, "srtt_ns": pl.Int64, "min_rtt_ns": pl.Int64, "rwnd_bytes": pl.Int64,
              "pacing_bps": pl.Int64, "delivery_rate_bps": pl.Int64, "app_limited": pl.Boolean,
              "delivered_bytes": pl.Int64, "delivered_packets": pl.Int64, "delivered_ce_packets": pl.Int64,
              "retransmits": pl.Int64, "lost": pl.Int64, "reordering": pl.Int64, "notsent_bytes": pl.Int64,
              "busy_ns": pl.Int64, "rwnd_limited_ns": pl.Int64, "sndbuf_limited_ns": pl.Int64, "state": pl.String},
    "queues": {"t_ns": pl.Int64, "port": pl.String, "layer": pl.String, "packets": pl.Int64, "bytes": pl.Int64,
               "dropped": pl.Int64, "marked": pl.Int64, "sent_packets": pl.Int64, "sent_bytes": pl.Int64,
               "airtime_ns": pl.Int64, "transmissions": pl.Int64, "limit_bytes": pl.Int64, "inflight_bytes": pl.Int64},
    "flow_queues": {"t_ns": pl.Int64, "port": pl.String, "queue": pl.Int64, "flow": pl.String, "packets": pl.Int64,
                    "bytes": pl.Int64},
    "drops": {"t_ns": pl.Int64, "port": pl.String, "layer": pl.String, "flow": pl.String, "bytes": pl.Int64,
              "reason": pl.String, "observed": pl.String},
    "transfers": {"traffic": pl.String, "flow": pl.String, "started_ns": pl.Int64, "finished_ns": pl.Int64,
                  "bytes": pl.Int64},
    "sojourns": {"t_ns": pl.Int64, "port": pl.String, "layer": pl.String, "sojourn_ns": pl.Int64, "packets": pl.Int64},
    "capacity": {"t_ns": pl.Int64, "port": pl.String, "rate_bps": pl.Int64},
    "estimates": {"traffic": pl.String, "direction": pl.String, "started_ns": pl.Int64, "idle_ns": pl.Int64,
                  "loaded_ns": pl.Int64, "rate_bps": pl.Int64, "sent": pl.Int64, "received": pl.Int64},
    "round_trips": {"t_ns": pl.Int64, "flow": pl.String, "half": pl.String, "method": pl.String, "rtt_ns": pl.Int64},
    "retransmissions": {"t_ns": pl.Int64, "flow": pl.String, "bytes": pl.Int64, "kind": pl.String,
                        "spurious": pl.Boolean},
    "one_way": {"t_ns": pl.Int64, "flow": pl.String, "way": pl.String, "change_ns": pl.Int64},
    "hops": {"t_ns": pl.Int64, "ladder": pl.String, "ttl": pl.Int64, "address": pl.String, "rtt_ns": pl.Int64,
             "kind": pl.String, "mpls": pl.Boolean},
    "stages": {"t_ns": pl.Int64, "end": pl.String, "stage": pl.String, "delay_ns": pl.Int64},
}  # fmt: skip

TCP = {"kind": "tcp", "flows": 1, "bytes": None, "congestion": "reno", "ecn": False}
PING = {"kind": "ping", "interval_ns": 100 * MS, "payload_bytes": 56, "timeout_ns": 60 * SECOND}
IRTT = {"kind": "irtt", "interval_ns": 200 * MS, "payload_bytes": 60, "timeout_ns": 60 * SECOND}
NETALYZR = {
    "kind": "netalyzr", "probes": 10, "interval_ns": 50 * MS, "load_ns": 5 * SECOND, "pause_ns": 5 * SECOND,
    "payload_bytes": 972, "rate_bps": 20_000_000,
}  # fmt: skip
WEB = {
    "kind": "web",
    "interval_ns": 2 * SECOND,
    "bytes": 177669,
    "request_bytes": 200,
    "congestion": "reno",
    "ecn": False,
}

UDP = {
    "kind": "udp", "flows": 1, "rate_bps": 1_000_000, "payload_bytes": 1000, "pattern": "constant", "on_off": None
}  # fmt: skip
VOIP = {"kind": "voip", "both_ways": True}
GAME = {"kind": "game", "tick_ns": 10 * MS, "command_bytes": 40, "update_bytes": 128, "late_ns": 10 * MS}
VIDEO = {
    "kind": "video", "segment_ns": 2 * SECOND, "rates_bps": [400_000, 800_000], "request_bytes": 200,
    "startup_ns": 2 * SECOND, "resume_ns": 4 * SECOND, "buffer_ns": 10 * SECOND, "congestion": "reno", "ecn": False,
}  # fmt: skip
DNS = {
    "kind": "dns", "interval_ns": SECOND, "pattern": "constant", "request_bytes": 44, "response_bytes": 108,
    "timeout_ns": 5 * SECOND, "attempts": 2,
}  # fmt: skip

Rows = list[dict[str, Any]]


def port(rate: list[tuple[int, int]] | None, delay_ms: int = 5, queue: dict[str, Any] | None = None) -> dict[str, Any]:
    """One direction of a link; `rate` as steps of (from_ns, bits_per_second)."""
    return {
        "rate": rate and [{"from_ns": t, "bits_per_second": bps} for t, bps in rate],
        "delay_ns": delay_ms * MS,
        "overhead_bytes": 14,
        "queue": queue or {"qdisc": "pfifo", "limit_packets": 100},
    }


def scenario(
    traffic: dict[str, dict[str, Any]],
    duration_s: float = 10,
    warmup_s: float = 0,
    rate: list[tuple[int, int]] | None = None,
    queue: dict[str, Any] | None = None,
) -> Any:
    """The resolved scenario of `h1 - r1 - h2` with this traffic from h1 to h2.

    It lacks keys that no metric needs, and tests change it, so it is not typed as a scenario.
    """
    tcp = {"rmem_max_bytes": 6291456, "rmem_default_bytes": 131072, "initial_window_packets": 10}
    duration_ns = round(duration_s * SECOND)
    bottleneck = port(rate or [(0, 10_000_000)], queue=queue)
    return {
        "duration_ns": duration_ns,
        "warmup_ns": round(warmup_s * SECOND),
        "sample_interval_ns": 10 * MS,
        "sojourns": "histogram",
        "nodes": [{"name": name, "tcp": tcp} for name in ("h1", "r1", "h2")],
        "links": [
            {"name": "access", "ends": [0, 1], "forward": port(None), "reverse": port(None)},
            {"name": "bottleneck", "ends": [1, 2], "forward": bottleneck, "reverse": copy.deepcopy(bottleneck)},
        ],
        "traffic": [
            {"name": name, "from": 0, "to": 2, "start_ns": 0, "stop_ns": duration_ns, **kind}
            for name, kind in traffic.items()
        ],
    }


def table(name: str, rows: Rows) -> pl.DataFrame:
    """A table from rows that give only the relevant columns; other numbers are 0, and other strings are empty."""
    empty: dict[type[pl.DataType], Any] = {pl.String: "", pl.Boolean: False}
    defaults = {column: empty.get(kind, 0) for column, kind in SCHEMAS[name].items()}
    if name in ("queues", "drops", "sojourns"):
        defaults |= {"port": "r1>h2", "layer": "qdisc"}
    return pl.DataFrame([defaults | row for row in rows], schema=SCHEMAS[name])


@dataclass
class HandmadeRun:
    """A run in memory."""

    scenario: Any
    rows: dict[str, Rows] = field(default_factory=dict)
    id: str = "handmade"
    seed: int = 1
    point: dict[str, str] = field(default_factory=dict)
    experiment: str = "handmade"
    document: dict[str, Any] = field(default_factory=lambda: {"title": "Made by hand"})
    expectations: list[dict[str, Any]] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    engine: str = "sim"
    position: int = 0
    """Index of the experiment's point."""
    summary: dict[str, Any] = field(default_factory=lambda: {"events": 1, "hops": 1})

    @property
    def facts(self) -> RunFacts:
        return RunFacts.of(self.meta)

    @property
    def meta(self) -> Any:
        return {
            "format": FORMAT,
            "bufferscope": "0.1.0",
            "experiment": self.experiment,
            "title": self.document["title"],
            "document": self.document,
            "expectations": self.expectations,
            "overrides": self.overrides,
            "engine": self.engine,
            "engine_version": "0.1.0",
            "seed": self.seed,
            "point": self.point,
            "position": self.position,
            "scenario": self.scenario,
            "started": "2026-01-01T00:00:00+00:00",
            "wall_s": 0.5,
            "cpu_s": 0.5,
            "sampling": {"asked_ns": 10 * MS, "achieved_ns": 10 * MS},
            "mss_bytes": MSS,
            "machine": {"system": "Linux", "machine": "x86_64", "cpu": "a processor", "cpus": 2, "python": "3.11"},
            "summary": self.summary,
            "warnings": self.warnings,
            "tables": {name: len(self._rows(name)) for name in SCHEMAS},
        }

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name not in SCHEMAS:
            raise AttributeError(name)
        return table(name, self._rows(name))

    def _rows(self, name: str) -> Rows:
        """The rows of a table. If the capacity is not given, every port had the rates of the scenario."""
        if name == "capacity" and name not in self.rows:
            return [
                {"t_ns": step.from_ns, "port": port.name, "rate_bps": step.bits_per_second}
                for port in ports(self.scenario).values()
                for step in port.rate
            ]
        return self.rows.get(name, [])

    def write(self, results: Path) -> Path:
        """A run directory in `results`, as engines leave it: `run.json` and one Parquet file a table."""
        directory = results / self.experiment / self.id
        directory.mkdir(parents=True)
        for name in SCHEMAS:
            getattr(self, name).write_parquet(directory / f"{name}.parquet")
        write_metadata(directory, self.meta)
        return directory


@dataclass
class HandmadeResult:
    """Runs of one experiment, in memory."""

    runs: list[HandmadeRun]


def sweep(labels: list[str], make: Callable[[str], HandmadeRun]) -> HandmadeResult:
    """A result with one run per label of the swept key `link.bottleneck.queue.limit`."""
    runs = []
    for label in labels:
        run = make(label)
        run.point, run.id = {"link.bottleneck.queue.limit": label}, f"{label}-sim-s1"
        runs.append(run)
    return HandmadeResult(runs)


def pfifo(limit_packets: int) -> dict[str, Any]:
    """The queue of a scenario: tail drop."""
    return {"qdisc": "pfifo", "limit_packets": limit_packets}


def estimates(traffic: str, added_ms: int = 100, mbit: int = 8) -> Rows:
    """What a netalyzr test observes in both directions: 20 ms without load, and so much more with it."""
    row = {"traffic": traffic, "idle_ns": 20 * MS, "loaded_ns": (20 + added_ms) * MS, "rate_bps": mbit * 1_000_000}
    return [row | {"direction": direction} for direction in ("down", "up")]


def probes(rtts_ms: list[float | None], interval_ms: int = 100) -> Rows:
    """One probe every `interval_ms` from 0 on; None is a lost one."""
    return [
        {"probe": "ping", "seq": n, "sent_ns": n * interval_ms * MS, "rtt_ns": None if rtt is None else round(rtt * MS),
         "owd_up_ns": None, "owd_down_ns": None}
        for n, rtt in enumerate(rtts_ms)
    ]  # fmt: skip
