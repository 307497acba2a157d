"""Streams of events as `bufferscope-live measure --events` prints them, made by hand, and programs that print them.

The path has three links of 10 ms in all. Under upload, a queue of 80 ms stands in the router's uplink (onto link 2);
under download, nothing rises.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SECOND = 1_000_000_000
MS = 1_000_000
BEGIN = 5_000 * SECOND
"""The origin of the client's clock is anything."""
REALTIME = 1_800_000_000 * SECOND
"""2027-01-15 08:00:00 UTC."""
PHASES = {"idle": (0, 4), "download": (4, 10), "upload": (10, 16), "both": (16, 22), "cool_down": (22, 24)}
"""Seconds from the beginning."""
LOADS = {"download": ("down",), "upload": ("up",), "both": ("down", "up")}
RATES = {"down": 40_000_000, "up": 10_000_000}
OFFSET = {"up": 777 * SECOND, "down": -777 * SECOND}
"""The clocks of the two ends differ."""
BASE_MS, QUEUE_MS = 10.0, 80.0
ADDRESSES = {1: "192.168.1.1", 2: "203.0.113.1"}
LOST_UP, LOST_DOWN = 700, 750
"""The numbers of the echoes that are lost: of the upload."""
ENDS: dict[str, Any] = {
    "client": {
        "link": "wifi", "link_bps": 300_000_000, "expected_wifi_bps": None, "qdisc": "fq_codel", "ring_packets": None,
        "bql": None, "software_stamps": True, "hops_to_other": 3, "unknown": ["the size of the ring"],
    },
    "server": {
        "link": "ethernet", "link_bps": 1_000_000_000, "expected_wifi_bps": None, "qdisc": "fq", "ring_packets": 256,
        "bql": True, "software_stamps": True, "hops_to_other": 3, "unknown": [],
    },
}  # fmt: skip


def queued_ms(kind: str, since_s: float) -> float:
    """The delay in the router's uplink: it fills within a second."""
    return QUEUE_MS * min(1.0, since_s) if "up" in LOADS.get(kind, ()) else 0.0


def observations(kinds: Sequence[str] = tuple(PHASES)) -> dict[str, Any]:
    """What was observed in these phases."""
    return {
        "phases": [_phase(kind) for kind in kinds],
        "ends": json.loads(json.dumps(ENDS)),
        "parameters": {"probe_interval_ns": 20 * MS, "congestion": "cubic", "mtu_bytes": 1500},
    }


def _phase(kind: str) -> dict[str, Any]:
    first, last = PHASES[kind]
    start = BEGIN + first * SECOND
    every = {
        name: range(0, (last - first) * 1000, step) for name, step in {"echo": 20, "slow": 500, "flow": 100}.items()
    }
    ways = LOADS.get(kind, ())
    echoes = [_echo(kind, first * 50 + n, start + t * MS, t / 1000) for n, t in enumerate(every["echo"])]
    return {
        "kind": kind,
        "start_ns": start,
        "end_ns": BEGIN + last * SECOND,
        "levelled": True if ways else None,
        "echoes": echoes,
        "tcp_probes": [
            {"t_ns": start + t * MS, "kind": name, "direction": ways[0] if name == "self" and ways else None,
             "rtt_ns": round((BASE_MS + queued_ms(kind, t / 1000)) * MS)}
            for t in every["slow"] for name in (("connect", "exchange", "self") if ways else ("connect",))
        ],
        "ladder": [_hop(kind, start + (t + 7 * ttl) * MS, ttl, t / 1000) for t in every["slow"] for ttl in (1, 2, 3)],
        "tcp_ladder": [],
        "stages": [
            {"t_ns": start + t * MS, "end": "client", "stage": "qdisc", "delay_ns": 4000} for t in every["slow"]
        ],
        "flows": [_flow(kind, way, flow, start, t) for t in every["flow"] for way in ways for flow in (1, 2)],
        "goodput": [
            {"t_ns": start + t * MS, "direction": way, "bytes": 5000 + RATES[way] // 8 * t // 1000}
            for t in every["flow"] for way in ways
        ],
        "local": [
            {"t_ns": start + t * MS, "end": end, "qdisc_bytes": 0, "qdisc_drops": 0, "ring_bytes": 1514,
             "cpu_busy": 0.25, "softirq": 0.03125}
            for t in every["flow"] for end in ("client", "server")
        ],
    }  # fmt: skip


def _echo(kind: str, number: int, t_ns: int, since_s: float) -> dict[str, Any]:
    jitter_ns = (number * 7919 % 13) * 20_000
    up_ns = round((BASE_MS / 2 + queued_ms(kind, since_s)) * MS) + jitter_ns
    down_ns = round(BASE_MS / 2 * MS)
    echo = {"t_ns": t_ns, "rtt_ns": up_ns + down_ns, "up_ns": up_ns + OFFSET["up"], "down_ns": down_ns + OFFSET["down"]}
    if number == LOST_UP:
        return {"t_ns": t_ns, "rtt_ns": None, "up_ns": None, "down_ns": None, "lost": "up"}
    if number == LOST_DOWN:
        return {"t_ns": t_ns, "rtt_ns": None, "up_ns": up_ns + OFFSET["up"], "down_ns": None, "lost": "down"}
    return {**echo, "lost": None}


def _hop(kind: str, t_ns: int, ttl: int, since_s: float) -> dict[str, Any]:
    if ttl == 3:
        return {"t_ns": t_ns, "end": "client", "ttl": 3, "address": None, "rtt_ns": None, "kind": "exceeded"}
    rtt_ms = {1: 2.0, 2: 6.0}[ttl] + (queued_ms(kind, since_s) if ttl > 1 else 0)
    return {
        "t_ns": t_ns, "end": "client", "ttl": ttl, "address": ADDRESSES[ttl], "rtt_ns": round(rtt_ms * MS),
        "kind": "exceeded", "mpls": False,
    }  # fmt: skip


def _flow(kind: str, way: str, flow: int, start: int, t: int) -> dict[str, Any]:
    return {
        "t_ns": start + t * MS, "direction": way, "flow": flow, "srtt_ns": round((BASE_MS + queued_ms(kind, 1)) * MS),
        "min_rtt_ns": round(BASE_MS * MS), "cwnd_bytes": 90_000, "notsent_bytes": 16_384, "retransmits": t // 1000,
        "delivered_bytes": RATES[way] // 16 * t // 1000, "busy_us": t * 1000, "rwnd_limited_us": 0,
        "sndbuf_limited_us": 0, "delivered_ce": 0,
    }  # fmt: skip


def spread(p50: float | None, p95: float | None, p99: float | None, most: float | None, **more: Any) -> dict[str, Any]:
    """A distribution, in ms."""
    values = {"p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "max_ns": most}
    found = {key: None if value is None else round(value * MS) for key, value in values.items()}
    return {"count": 300, "lost": 0, "censored": False, **found, **more}


def _direction(way: str, loaded: bool, rises: bool) -> dict[str, Any]:
    return {
        "direction": way,
        "loaded": loaded,
        "added": spread(80.0, 80.2, 80.24, 80.24) if rises else spread(0, 0.2, 0.24, 0.24),
        "loss": 0.0033 if rises else 0.0,
        "threshold_ns": 3 * MS,
        "rises": rises,
        "fill_ns": 800 * MS if rises else None,
        "goodput": {"mean_bps": RATES[way], "p10_bps": RATES[way] - 100_000, "variation": 0.01} if loaded else None,
        "buffer": {"delay_ns": 80 * MS, "bytes": 103_000, "header_factor": 1.036} if rises else None,
        "load": {
            "flows": 2, "rtt_rise_ns": 80 * MS, "retransmits": 0.001, "marks": 0.0, "rwnd_limited": 0.0,
            "sndbuf_limited": 0.0, "busy": 1.0,
        } if loaded else None,
    }  # fmt: skip


def _phase_verdict(kind: str) -> dict[str, Any]:
    ways = LOADS[kind]
    rises = "up" in ways
    uplink = {"place": "router_uplink", "direction": "up", "link": 2, "address": "192.168.1.1"}
    further = {"place": "hop", "direction": "up", "link": 3, "address": "203.0.113.1"}
    answer = {
        "text": "the router's uplink or a modem behind it (97 %)",
        "locations": [uplink],
        "probability": 0.97,
        "share": 1.0,
    }
    where = {
        "direction": "up",
        "posterior": [{"location": uplink, "probability": 0.97}, {"location": further, "probability": 0.03}],
        "answer": answer,
        "second": None,
    }
    added = spread(80.0, 80.2, 80.24, 80.24) if rises else spread(0.1, 0.2, 0.24, 0.24)
    return {
        "kind": kind,
        "start_ns": BEGIN + PHASES[kind][0] * SECOND,
        "numbers": {
            "idle_p50_ns": 10_120_000,
            "loaded": spread(90.1, 90.2, 90.24, 90.24) if rises else spread(10.1, 10.2, 10.24, 10.24),
            "added": added,
            "threshold_ns": 3 * MS,
            "directions": [_direction(way, way in ways, rises and way == "up") for way in ("up", "down")],
            "levelled": True,
        },
        "outcome": {
            "kind": "queue" if rises else "clean",
            "limit": None,
            "text": "The load makes a queue grow that delays everyone." if rises else "The delay did not rise.",
        },
        "where": [where] if rises else [],
        "hops": [
            {"end": "client", "ttl": ttl, "address": address, "idle_count": 8, "loaded_count": 12,
             "idle_p50_ns": 2 * MS if ttl == 1 else 6 * MS, "rise_ns": 80 * MS if rises and ttl > 1 else 0,
             "used": True, "note": None}
            for ttl, address in ADDRESSES.items()
        ],
        "stages": [{"end": "client", "stage": "qdisc", "delay": spread(0.004, 0.004, 0.004, 0.004)}],
        "grade": "C" if rises else "A+",
        "rpm": {
            "rpm": 640.2 if rises else 5800.0, "foreign": 650.0, "own": 630.4, "confidence": "medium", "reason": None,
            "parameters": {"mad": 4, "id_ns": SECOND, "tmp": 0.95, "sdt": 0.05},
        },
    }  # fmt: skip


def verdict(kinds: Sequence[str] = tuple(LOADS)) -> dict[str, Any]:
    """A verdict about these phases."""
    steps = {"A+": 5, "A": 30, "B": 60, "C": 200, "D": 400, "F": None}
    return {
        "idle": {
            "rtt": spread(10.12, 10.22, 10.24, 10.24), "mad_ns": 60_000, "queue_ns": 0, "drift_ppm": 0.1,
            "drift_error_ns": 10_000,
        },
        "phases": [_phase_verdict(kind) for kind in kinds],
        "grade": "C" if kinds else None,
        "grade_table": {
            "statistic": "the 95th percentile of the added delay",
            "steps": [{"grade": grade, "below_ns": most and most * MS} for grade, most in steps.items()],
        },
        "sentences": [
            "Your connection receives 40 Mbit/s and sends 10 Mbit/s.",
            "It answers within 10 ms when idle, and takes 80 ms longer while you upload: grade C.",
            "The delay builds up in your router's uplink, or in a modem behind it.",
            "This is 97 % certain: the router itself answers as fast as before, and the next hop 80 ms later.",
            "Set up cake or fq_codel on the router, a little below 10 Mbit/s.",
        ],
        "warnings": ["The last hop does not answer."],
        "evidence": [{"text": "rise of hop 2 under upload", "value": "80 ms"}],
    }  # fmt: skip


def start(**more: Any) -> dict[str, Any]:
    """The first event."""
    return {
        "event": "start", "version": "0.1.0", "host": "example.org", "address": "192.0.2.1:47300",
        "realtime_ns": REALTIME, "phases": list(PHASES), "parameters": {"flows": 2},
        "server": {"version": "0.1.0", "kernel": "6.12.1"}, "client": {"kernel": "6.1.0"}, **more,
    }  # fmt: skip


def end(kinds: Sequence[str] = tuple(PHASES), **more: Any) -> dict[str, Any]:
    """The last event."""
    return {
        "event": "end", "complete": True, "reason": None, "observations": observations(kinds),
        "verdict": verdict([kind for kind in kinds if kind in LOADS]),
        "accuracy": {"rx_stamps": "kernel", "timing_error_p99_ns": 12_000}, **more,
    }  # fmt: skip


def phase(kind: str) -> list[dict[str, Any]]:
    """The events of a phase: its beginning, and one progress."""
    begin = BEGIN + PHASES[kind][0] * SECOND
    ways = LOADS.get(kind, ())
    rates = {f"{way}_mbit": RATES[way] / 1e6 if way in ways else None for way in ("down", "up")}
    return [
        {"event": "phase", "phase": kind, "t_ns": begin, "at_most_s": 30},
        {"event": "progress", "t_ns": begin + SECOND, "phase": kind, "rtt_ms": 10.1, **rates, "left_s": 29.0},
    ]


def complete() -> list[dict[str, Any]]:
    """A whole measurement."""
    return [start(), *(event for kind in PHASES for event in phase(kind)), end()]


def interrupted() -> dict[str, Any]:
    """The last event of a measurement that was interrupted under download."""
    return end(["idle", "download"], complete=False, reason="interrupted")


PROGRAM = """\
#!{python} -S
import os, signal, sys, time
place = {place!r}
with open(place + "/called", "w") as file:
    file.write("\\n".join([*sys.argv[1:], os.environ.get("BUFFERSCOPE_TOKEN", "no token")]))
def stop(number, frame):
    sys.stdout.buffer.write(open(place + "/stopped", "rb").read())
    sys.stdout.flush()
    os._exit(1)
signal.signal(signal.SIGINT, stop)
sys.stderr.write({error!r})
sys.stderr.flush()
sys.stdout.buffer.write(open(place + "/events", "rb").read())
sys.stdout.flush()
{then}
sys.exit({status})
"""


def program(
    directory: Path,
    events: Sequence[dict[str, Any]] | bytes,
    *,
    error: str = "",
    status: int = 0,
    then: str = "",
    stopped: Sequence[dict[str, Any]] = (),
) -> Path:
    """A program that prints these events and ends with this status; on SIGINT, it prints those of `stopped`.

    `then` is run before the end: `time.sleep(60)`. Its arguments and its token are in the file `called`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "events").write_bytes(events if isinstance(events, bytes) else lines(events))
    (directory / "stopped").write_bytes(lines(stopped))
    path = directory / "bufferscope-live"
    text = PROGRAM.format(python=sys.executable, place=str(directory), error=error, then=then, status=status)
    path.write_text(text)
    path.chmod(0o755)
    return path


def lines(events: Sequence[dict[str, Any]]) -> bytes:
    """Events as the program writes them."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)
