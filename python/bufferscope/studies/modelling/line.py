"""The model of a line, and its experiment file.

The path is that of a home: a laptop, its router, a modem, the provider, a server. The line between modem and provider
has the rates and the queues; everything else is fast. The propagation delay is half of the idle round trip each way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bufferscope.model.overrides import toml
from bufferscope.store.verdict import Direction, PhaseKind

SIDES: Mapping[Direction, str] = {"up": "forward", "down": "reverse"}
LOADS: Mapping[PhaseKind, tuple[Direction, ...]] = {"upload": ("up",), "download": ("down",), "both": ("down", "up")}
IDLE_S = 1.0
"""The time before the load."""
FAST = "1gbit"
ECHO_S = 0.02
MANAGED = "fq_codel"
TAIL_DROP, IN_PACKETS = "bfifo", "pfifo"
LEAST_PACKETS = 2
FRAME = 1514
"""What a full packet takes of a queue with a limit in packets."""


@dataclass(frozen=True)
class ModelledQueue:
    """One direction of the line."""

    rate_bps: float
    """The rate of IP packets with an Ethernet header, in bit/s."""
    qdisc: str
    """The queueing discipline: `bfifo`, `pfifo` or `fq_codel`."""
    limit_bytes: int | None
    """The size of a tail-drop queue, in bytes."""
    is_known: bool
    """Whether the data show the queue; otherwise it is a guess that adds no delay."""
    steps: tuple[tuple[float, float], ...] = ()
    """A rate that varies: seconds after the beginning of the load, and bit/s."""

    @property
    def limit_packets(self) -> int | None:
        """The limit of a tail-drop queue whose limit is in packets."""
        if self.qdisc != IN_PACKETS or self.limit_bytes is None:
            return None
        return max(round(self.limit_bytes / FRAME), LEAST_PACKETS)


@dataclass(frozen=True)
class LoadOpening:
    """How the connections of a load begin. Slow start, and with it the first burst, depends on it.

    A port with a rate at the sender lets packets of connections that begin together alternate, because of TCP small
    queues. Without one, the first window of each connection stays together, as segmentation offload keeps it.
    """

    stagger_ms: float = 0.0
    """The time between the starts of two connections, in ms."""
    has_ports: bool = False
    """Whether the ports of the two hosts have a rate of 1 Gbit/s; otherwise they send at once."""


@dataclass(frozen=True)
class LineModel:
    """The whole path, and the load of the test."""

    name: str
    """What follows `the line`: `to 203.0.113.9`, `of evening`."""
    rtt_ns: int
    """The round trip of the idle path, in ns."""
    jitter_ns: int
    """How far the propagation delay of each direction varies, uniformly, in ns."""
    queues: Mapping[Direction, ModelledQueue]
    """The queue and the rate of each direction."""
    flows: Mapping[Direction, int]
    """The connections of the load in each direction."""
    congestion: str
    """Their congestion control."""
    payload_share: float
    """The part of a frame that is payload."""
    shapers: Mapping[Direction, int] = field(default_factory=dict)
    """Rates of shapers (cake) on the router, in kbit/s."""
    opening: LoadOpening = LoadOpening()
    """How the connections of the load begin, which no measurement shows exactly."""


def text(model: LineModel, kind: PhaseKind, load_s: float, longer_s: float = 0.0) -> str:
    """The experiment file with the load of one phase; it runs `longer_s` longer than that."""
    document: dict[str, object] = {
        "title": f"Model of the line {model.name}: {kind}",
        "description": "Fitted by bufferscope model to a measurement.",
        "figures": ["rtt", "goodput_delay", "rtt_cdf"],
        "duration": f"{IDLE_S + load_s + longer_s:g}s",
        "warmup": f"{IDLE_S + min(load_s / 5, 2.0):g}s",
    }
    half = f"{max(model.rtt_ns // 2, 0)}ns"
    port = {"rate": FAST} if model.opening.has_ports else {}
    stagger = {"stagger": f"{model.opening.stagger_ms:g}ms"} if model.opening.stagger_ms else {}
    links: list[dict[str, object]] = [
        {"name": "home", "ends": ["laptop", "router"], **port, **_shaper(model, "down", "reverse")},
        {"name": "wan", "ends": ["router", "modem"], **_shaper(model, "up", "forward")},
        {
            "name": "line",
            "ends": ["modem", "provider"],
            **{SIDES[way]: {"rate": _rate_of(queue), "queue": _queue_of(queue)} for way, queue in model.queues.items()},
        },
        {"name": "path", "ends": ["provider", "server"], **port, "delay": half, **_wire(model)},
    ]
    traffic: list[dict[str, object]] = [
        {
            "name": {"up": "upload", "down": "download"}[way],
            "kind": "tcp",
            "from": "laptop" if way == "up" else "server",
            "to": "server" if way == "up" else "laptop",
            "flows": model.flows[way],
            "congestion": model.congestion,
            "start": f"{IDLE_S:g}s",
            **stagger,
        }
        for way in LOADS[kind]
    ]
    traffic.append({"name": "ping", "kind": "irtt", "from": "laptop", "to": "server", "interval": f"{ECHO_S:g}s"})
    lines = [f"{key} = {toml(value)}" for key, value in document.items()]
    for table, entries in (("link", links), ("traffic", traffic)):
        for entry in entries:
            lines += ["", f"[[{table}]]", *(f"{key} = {toml(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def _queue_of(queue: ModelledQueue) -> dict[str, object]:
    """The queue as experiment files have it."""
    if queue.limit_bytes is None:
        return {"qdisc": queue.qdisc}
    packets = queue.limit_packets
    return {"qdisc": queue.qdisc, "limit": f"{queue.limit_bytes}b" if packets is None else f"{packets}p"}


def _rate_of(queue: ModelledQueue) -> object:
    """The rate as experiment files have it."""
    if not queue.steps:
        return _rate(queue.rate_bps)
    return [[f"{IDLE_S + at if at else 0:g}s", _rate(rate)] for at, rate in queue.steps]


def _wire(model: LineModel) -> dict[str, object]:
    return {"wire": {"jitter": f"{model.jitter_ns}ns", "keep_order": True}} if model.jitter_ns else {}


def _shaper(model: LineModel, way: Direction, side: str) -> dict[str, object]:
    if way not in model.shapers:
        return {}
    shaper = {"qdisc": "cake", "bandwidth": f"{model.shapers[way]}kbit", **({"ingress": True} if way == "down" else {})}
    return {side: {"rate": FAST, "queue": shaper}}


def _rate(bits_per_second: float) -> str:
    return f"{max(round(bits_per_second), 1000)}bit"
