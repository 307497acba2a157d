"""Live measurements of simulated paths, which a model has to find out."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import livestreams
import polars as pl
from livestreams import BEGIN, SECOND

from bufferscope import _core
from bufferscope.interop.live.measuring import read_events
from bufferscope.running.stepping import Simulation
from bufferscope.store.memory import MemoryRun
from bufferscope.store.run import Run

LOADED_S, IDLE_S = 10, 3
ANSWERED_S = 1
"""How much longer paths are simulated, until the last probes are answered."""
PATH = """
title = "A path"
duration = "{duration}s"
[[link]]
name = "near"
ends = ["me", "home"]
rate = "300mbit"
delay = "{near}us"
{shaper_down}
[[link]]
name = "out"
ends = ["home", "box"]
rate = "1gbit"
{shaper_up}
[[link]]
name = "line"
ends = ["box", "isp"]
{wire}
forward = {{ rate = "{up}kbit", delay = "{delay_up}us", queue = {queue_up} }}
reverse = {{ rate = "{down}kbit", delay = "{delay_down}us", queue = {queue_down} }}
[[link]]
name = "far"
ends = ["isp", "host"]
rate = "1gbit"
[[traffic]]
name = "udp"
kind = "irtt"
from = "me"
to = "host"
interval = "20ms"
{loads}
"""
LOAD = """
[[traffic]]
name = "{name}"
kind = "tcp"
from = "{sender}"
to = "{receiver}"
flows = {flows}
congestion = "{congestion}"
start = "{start}s"
"""


@dataclass(frozen=True)
class HiddenPath:
    """A path that a model has to find out."""

    settings: dict[str, Any]
    congestion: str
    flows: int

    @property
    def is_managed(self) -> bool:
        return "fq_codel" in self.settings["queue_up"]

    def simulated(self, way: str, shapers: Mapping[Any, int] | None = None, seed: int = 1) -> MemoryRun:
        """The test of one direction."""
        ends = ("me", "host") if way == "up" else ("host", "me")
        load = LOAD.format(
            name=way, sender=ends[0], receiver=ends[1], flows=self.flows, congestion=self.congestion, start=IDLE_S
        )
        shaped = {
            "shaper_up": _shaper("forward", shapers.get("up"), "") if shapers else "",
            "shaper_down": _shaper("reverse", shapers.get("down"), ", ingress = true") if shapers else "",
        }
        text = PATH.format(duration=IDLE_S + LOADED_S + ANSWERED_S, loads=load, **shaped, **self.settings)
        return Simulation(text, seed=seed).finish()


def _shaper(side: str, kbit: int | None, more: str) -> str:
    return "" if kbit is None else f'{side} = {{ queue = {{ qdisc = "cake", bandwidth = "{kbit}kbit"{more} }} }}'


def hidden(seed: int) -> HiddenPath:
    """A path drawn at random: rates, delays that differ by direction, queues in packets or bytes, jitter."""
    draw = random.Random(seed)
    up, down = (round(10 ** draw.uniform(3.3, 4.8)) for _ in range(2))
    managed = draw.random() < 0.15
    queues = []
    for rate in (up, down):
        full_ms = 10 ** draw.uniform(1.6, 2.9)
        size = max(round(rate * full_ms / 8), 15_000)
        packets = f'{{ qdisc = "pfifo", limit = "{max(size // 1514, 10)}p" }}'
        octets = f'{{ qdisc = "bfifo", limit = "{size}b" }}'
        queues.append('{ qdisc = "fq_codel" }' if managed else draw.choice([packets, octets]))
    jitter = draw.choice([0, 0, 300, 1000])
    settings = {
        "near": draw.randint(50, 1500),
        "up": up,
        "down": down,
        "delay_up": draw.randint(1000, 40_000),
        "delay_down": draw.randint(1000, 40_000),
        "queue_up": queues[0],
        "queue_down": queues[1],
        "wire": f'wire = {{ jitter = "{jitter}us", keep_order = true }}' if jitter else "",
    }
    return HiddenPath(settings, draw.choice(["cubic", "cubic", "reno"]), draw.choice([2, 4, 8]))


def measured(path: HiddenPath, directory: Path, seed: int = 1) -> Run:
    """A live measurement of a path, as if both ends had seen what was simulated."""
    phases = [_phases(path.simulated(way, seed=seed), path, way) for way in ("down", "up")]
    (idle, down), (_, up) = phases
    _move(up, LOADED_S * SECOND)
    found = {
        "phases": [idle, down, up],
        "ends": livestreams.observations([])["ends"],
        "parameters": {"probe_interval_ns": 20_000_000, "congestion": path.congestion, "mtu_bytes": 1500},
    }
    verdict = json.loads(_core.judge(json.dumps(found)))
    end = {**livestreams.end([]), "observations": found, "verdict": verdict}
    lines = livestreams.lines([livestreams.start(), end]).splitlines()
    return read_events(lines, directory)


def _phases(run: MemoryRun, path: HiddenPath, way: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The idle phase, and the one that loads a direction."""
    begin = IDLE_S * SECOND
    end = (IDLE_S + LOADED_S) * SECOND
    kind = "download" if way == "down" else "upload"
    empty: dict[str, Any] = {"tcp_probes": [], "ladder": [], "stages": [], "local": []}
    idle = {"kind": "idle", "start_ns": BEGIN, "end_ns": BEGIN + begin, "levelled": None, **empty}
    loaded = {"kind": kind, "start_ns": BEGIN + begin, "end_ns": BEGIN + end, "levelled": True, **empty}
    for phase, first, last in ((idle, 0, begin), (loaded, begin, end)):
        rows = run.probes.filter(pl.col("sent_ns").is_between(first, last, closed="left"))
        columns = rows.select("sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns")
        phase["echoes"] = [
            {"t_ns": BEGIN + sent, "rtt_ns": rtt, "up_ns": up, "down_ns": down, "lost": None if rtt else _lost(up)}
            for sent, rtt, up, down in columns.iter_rows()
        ]
        phase |= {"flows": [], "goodput": []}
    names = run.flows["flow"].unique().sort().to_list()
    for number, name in enumerate(names):
        rows = run.flows.filter((pl.col("flow") == name) & pl.col("t_ns").is_between(begin, end))
        for t_ns, srtt, least, sent in rows.select("t_ns", "srtt_ns", "min_rtt_ns", "delivered_bytes").iter_rows():
            sample = {"t_ns": BEGIN + t_ns, "direction": way, "flow": number, "srtt_ns": srtt, "min_rtt_ns": least}
            loaded["flows"].append({**sample, "delivered_bytes": sent, "busy_us": (t_ns - begin) // 1000})
    total: dict[int, int] = {}
    for name in names:
        for t_ns, sent in run.flows.filter(pl.col("flow") == name).select("t_ns", "delivered_bytes").iter_rows():
            if begin <= t_ns <= end:
                total[t_ns] = total.get(t_ns, 0) + (sent or 0)
    loaded["goodput"] = [
        {"t_ns": BEGIN + t_ns, "direction": way, "bytes": count} for t_ns, count in sorted(total.items())
    ]
    return idle, loaded


def _lost(up_ns: int | None) -> str:
    """Where an echo was lost, as the server's stamps show it."""
    return "up" if up_ns is None else "down"


def _move(phase: dict[str, Any], by_ns: int) -> None:
    for key in ("start_ns", "end_ns"):
        phase[key] += by_ns
    for samples in phase.values():
        for sample in samples if isinstance(samples, list) else ():
            sample["t_ns"] += by_ns
