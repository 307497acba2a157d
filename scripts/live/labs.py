"""The networks of the trials: what is planted in each, and what a verdict about it must say."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

FRAME_BYTES = 1514
"""A full packet with its Ethernet header."""
CHAIN = ("h1", "r1", "r2", "r3", "h2")
"""The client's machine, its router, two routers of providers, and the server."""
SHARES = (0.02, 0.28, 0.5, 0.2)
"""The parts of the path's delay on the links of the chain: most of it is on those of the providers."""


@dataclass(frozen=True)
class Planted:
    """A queue on the path."""

    port: str
    """Its port, as in `r1>r2`."""
    direction: str
    """`up` or `down`."""
    location: str
    """What the verdict calls it; `hop` for a queue of a router in the middle."""
    link: int
    """The link, counted from the client."""

    @property
    def phase(self) -> str:
        """The phase whose load fills it."""
        return "upload" if self.direction == "up" else "download"


PORTS = (
    Planted("h1>r1", "up", "client_qdisc", 1),
    Planted("r1>r2", "up", "router_uplink", 2),
    Planted("r2>r3", "up", "hop", 3),
    Planted("r3>h2", "up", "last_hop", 4),
    Planted("r1>h1", "down", "router_downlink", 1),
    Planted("r2>r1", "down", "access_downlink", 2),
    Planted("r3>r2", "down", "hop", 3),
    Planted("h2>r3", "down", "server_qdisc", 4),
)
UPLINK, DOWNLINK = PORTS[1], PORTS[5]
RING = Planted("h1>r1", "up", "client_driver", 1)
OF_ROUTERS = tuple(port for port in PORTS if port.location not in ("client_qdisc", "server_qdisc"))


@dataclass(frozen=True)
class Trial:
    """What is drawn from a seed."""

    seed: int
    kind: str
    """A name of [`KINDS`][]."""
    rate_mbit: float
    rtt_ms: float
    buffer_ms: float
    flows: int

    @property
    def packets(self) -> int:
        """The limit of the planted queue, in packets."""
        return max(10, round(self.rate_mbit * 1e3 * self.buffer_ms / 8 / FRAME_BYTES))

    def dice(self) -> random.Random:
        """For what a kind draws besides; the same at every call."""
        return random.Random(f"{self.seed} {self.kind}")


PhaseVerdict = Mapping[str, Any]
"""The verdict about one phase, as in the JSON of a test."""


@dataclass(frozen=True)
class Lab:
    """The network of a trial, and what a verdict about it must say."""

    links: Sequence[str]
    """The links, in the TOML of an experiment file."""
    phase: str
    """The phase that is judged, and run."""
    is_right: Callable[[PhaseVerdict], bool]
    """Whether a verdict is right, if every planted queue has filled."""
    observed: Sequence[Planted] = ()
    """The planted queues, if `tc` knows their true delay: it does not see rings."""
    rates_mbit: Sequence[float] = ()
    """Their rates; if empty, the trial's."""
    setup: Mapping[str, str] = field(default_factory=dict)
    """What a shell on a node does before the test. It may not end: the test begins after five seconds."""
    options: Sequence[str] = ()
    """Of `bufferscope-live measure`; if empty, the trial's flows."""
    server_options: Sequence[str] = ()
    """Of `bufferscope-live serve`."""
    kernel: str = ""
    """The guest's kernel, if it is not the usual one."""
    traffic: Sequence[str] = ()
    """Of others, in TOML. It runs from before the test until after it."""

    def experiment(self, title: str) -> str:
        """The experiment file."""
        ping = ["[[traffic]]", 'name = "ping"', 'kind = "ping"', 'from = "h1"', 'to = "h2"']
        lines = [f'title = "{title}"', 'duration = "300s"', *self.links, *(self.traffic or ping)]
        return "\n".join(lines) + "\n"


def drop_tail(trial: Trial) -> str:
    """The keys of a direction with the planted queue."""
    return _bottleneck(trial, f'{{ qdisc = "pfifo", limit = "{trial.packets}p" }}')


def _bottleneck(trial: Trial, queue: str, ring: str = "") -> str:
    return f'{{ rate = "{trial.rate_mbit}mbit", queue = {queue}{ring} }}'


def chain(trial: Trial, bottlenecks: Mapping[str, str], nodes: Sequence[str] = CHAIN) -> list[str]:
    """The links of the chain in TOML; `bottlenecks` are the keys of ports, as in `r1>r2`."""
    shares = dict(zip(pairwise(CHAIN), SHARES, strict=True))
    lines: list[str] = []
    for near, far in pairwise(nodes):
        share = shares.get((near, far), shares["r1", "r2"] / 2)
        lines += _link(near, far, trial.rtt_ms / 2 * share, bottlenecks)
    return lines


def _link(near: str, far: str, delay_ms: float, bottlenecks: Mapping[str, str]) -> list[str]:
    lines = ["[[link]]", f'name = "{near}-{far}"', f'ends = ["{near}", "{far}"]', f'delay = "{delay_ms:.3f}ms"']
    if forward := bottlenecks.get(f"{near}>{far}"):
        lines.append(f"forward = {forward}")
    if reverse := bottlenecks.get(f"{far}>{near}"):
        lines.append(f"reverse = {reverse}")
    return [*lines, ""]


# What verdicts say


def _answer(phase: PhaseVerdict, direction: str) -> tuple[list[tuple[str, int]], Mapping[str, Any]] | None:
    """The locations of a direction's answer, and the whole entry."""
    found = next((each for each in phase["where"] if each["direction"] == direction), None)
    return found and ([(each["place"], each["link"]) for each in found["answer"]["locations"]], found)


def _is(planted: Planted, location: tuple[str, int]) -> bool:
    return location[1] == planted.link and planted.location in (location[0], "hop")


def names(*planted: Planted) -> Callable[[PhaseVerdict], bool]:
    """The verdict must name each of these and no other queue."""

    def is_right(phase: PhaseVerdict) -> bool:
        if phase["outcome"]["kind"] != "queue" or len(phase["where"]) != len(planted):
            return False
        answers = [(each, _answer(phase, each.direction)) for each in planted]
        return all(answer and len(answer[0]) == 1 and _is(each, answer[0][0]) for each, answer in answers)

    return is_right


def names_among(planted: Planted, links: range) -> Callable[[PhaseVerdict], bool]:
    """As `names`; but the path does not let anyone tell these links apart, so any of them may be named together."""

    def is_right(phase: PhaseVerdict) -> bool:
        answer = _answer(phase, planted.direction)
        if phase["outcome"]["kind"] != "queue" or not answer or len(phase["where"]) != 1:
            return False
        return planted.link in {link for _, link in answer[0]} and all(link in links for _, link in answer[0])

    return is_right


def ends_as(outcome: str, limit: str | None = None) -> Callable[[PhaseVerdict], bool]:
    """The outcome must be this one; and nothing may be located."""

    def is_right(phase: PhaseVerdict) -> bool:
        found = phase["outcome"]
        return not phase["where"] and found["kind"] == outcome and limit in (None, found["limit"])

    return is_right


def _names_nothing(phase: PhaseVerdict) -> bool:
    return not phase["where"] and phase["outcome"]["kind"] != "queue"


# The kinds of trials


def _port(planted: Planted) -> Callable[[Trial], Lab]:
    def lab(trial: Trial) -> Lab:
        return Lab(chain(trial, {planted.port: drop_tail(trial)}), planted.phase, names(planted), (planted,))

    return lab


def _clean(trial: Trial) -> Lab:
    # Room for two packets: the load is cut off before it adds a delay.
    queue = '{ qdisc = "pfifo", limit = "2p" }'
    return Lab(chain(trial, {UPLINK.port: _bottleneck(trial, queue)}), UPLINK.phase, _names_nothing)


def _ring(trial: Trial) -> Lab:
    slots = _slots(trial)
    keys = _bottleneck(trial, '{ qdisc = "pfifo", limit = "10p" }', f', ring = {{ size = "{slots}p", bql = false }}')
    return Lab(chain(trial, {RING.port: keys}), RING.phase, names(RING))


def _slots(trial: Trial) -> int:
    return next((size for size in (64, 128, 256) if size >= trial.packets), 256)


def _ring_with_bql(trial: Trial) -> Lab:
    queue = f'{{ qdisc = "pfifo", limit = "{trial.packets}p" }}'
    keys = _bottleneck(trial, queue, ', ring = { size = "256p", bql = true }')
    # Byte queue limits leave three packets in the ring, and TCP small queues two of each flow in all. So that most of
    # the queue is above the ring, there are many flows. The usual kernel's virtio_net has no byte queue limits.
    links, options = chain(trial, {PORTS[0].port: keys}), ("--flows", "16")
    return Lab(links, PORTS[0].phase, names(PORTS[0]), options=options, kernel="6.12")


def _ring_and_qdisc(trial: Trial) -> Lab:
    # TCP small queues leave about two packets of each flow here, more than the ring takes.
    slots = 64
    queue = '{ qdisc = "pfifo", limit = "1000p" }'
    keys = _bottleneck(trial, queue, f', ring = {{ size = "{slots}p", bql = false }}')

    def is_right(phase: PhaseVerdict) -> bool:
        answer = _answer(phase, "up")
        if phase["outcome"]["kind"] != "queue" or not answer or not answer[1]["second"]:
            return False
        named = [*answer[0], *((each["place"], each["link"]) for each in answer[1]["second"]["locations"])]
        return sorted(named) == [("client_driver", 1), ("client_qdisc", 1)]

    links, flows = chain(trial, {RING.port: keys}), ("--flows", "48")
    return Lab(links, RING.phase, is_right, options=flows, server_options=flows)


def _both_ways(trial: Trial) -> Lab:
    down = replace(trial, rate_mbit=min(round(trial.rate_mbit * 2.5, 1), 100))
    queues = {UPLINK.port: drop_tail(trial), DOWNLINK.port: drop_tail(down)}
    return Lab(
        chain(trial, queues),
        "both",
        names(UPLINK, DOWNLINK),
        (UPLINK, DOWNLINK),
        rates_mbit=(trial.rate_mbit, down.rate_mbit),
    )


def _managed(qdisc: str) -> Callable[[Trial], Lab]:
    def lab(trial: Trial) -> Lab:
        keys = _bottleneck(trial, f'{{ qdisc = "{qdisc}" }}')
        return Lab(chain(trial, {UPLINK.port: keys}), UPLINK.phase, ends_as("managed"))

    return lab


def _policer(trial: Trial) -> Lab:
    # A token bucket with room for two packets is a policer: what exceeds the rate is dropped, and nothing waits.
    burst = trial.dice().choice((16, 32, 64))
    links, setup = _token_bucket(trial, burst, 2 * FRAME_BYTES)
    return Lab(links, UPLINK.phase, _names_nothing, setup=setup)


def _window(trial: Trial) -> Lab:
    # The windows of all connections together fill half of the link, and each holds at least four segments.
    rate = max(trial.rate_mbit, math.ceil(trial.flows * 4 * 1448 * 8 * 2 / trial.rtt_ms / 1e3))
    trial = replace(trial, rate_mbit=rate)
    window = round(trial.rtt_ms * rate * 1e3 / 8 / 2 / trial.flows)
    # Half of the buffer is for the kernel's own structures.
    small = f'sysctl -w net.ipv4.tcp_rmem="4096 {2 * window} {2 * window}"'
    setup = {"h1": small, "h2": small}
    return Lab(
        chain(trial, {DOWNLINK.port: drop_tail(trial)}),
        DOWNLINK.phase,
        ends_as("not_filled", "receive_window"),
        setup=setup,
    )


def _burst(trial: Trial) -> Lab:
    burst = trial.dice().choice((16, 32, 64))
    links, setup = _token_bucket(trial, burst, trial.packets * FRAME_BYTES)
    return Lab(links, UPLINK.phase, names(UPLINK), (UPLINK,), setup=setup)


def _token_bucket(trial: Trial, burst_kb: int, limit_bytes: int) -> tuple[list[str], Mapping[str, str]]:
    """Links whose uplink is fast, and the command that puts a token bucket there."""
    fast = '{ rate = "1gbit", queue = { qdisc = "pfifo", limit = "1000p" } }'
    bucket = f"tbf rate {trial.rate_mbit}mbit burst {burst_kb}kb limit {limit_bytes}"
    return chain(trial, {UPLINK.port: fast}), {"r1": f"tc qdisc replace dev to-r2 root {bucket}"}


def _rate_limited(trial: Trial) -> Lab:
    planted = trial.dice().choice(PORTS)
    setup = dict.fromkeys(("r1", "r2", "r3"), "sysctl -w net.ipv4.icmp_ratelimit=3000")
    return replace(_port(planted)(trial), setup=setup)


def _silent(trial: Trial) -> Lab:
    dice = trial.dice()
    planted, hop = dice.choice(OF_ROUTERS), dice.choice((1, 2, 3))
    # What the router itself sends goes nowhere; it still forwards.
    setup = {f"r{hop}": "ip rule add iif lo pref 10 blackhole"}
    return Lab(
        chain(trial, {planted.port: drop_tail(trial)}), planted.phase, _beside(planted, hop), (planted,), setup=setup
    )


def _beside(planted: Planted, hop: int) -> Callable[[PhaseVerdict], bool]:
    """If a hop does not answer, or only in its own time, nobody can tell the links before and behind it apart."""
    links = range(hop, hop + 2)
    return names_among(planted, links) if planted.link in links else names(planted)


SLOW = """
ip link add slow0 type veth peer name slow1
for name in slow0 slow1; do
  sysctl -w net.ipv4.conf.$name.accept_local=1 net.ipv4.conf.$name.rp_filter=0; ip link set $name up
done
tc qdisc add dev slow0 root tbf rate 40kbit burst 300 limit 20000
mac=$(cat /sys/class/net/slow1/address)
ip addr add 192.0.2.1/30 dev slow0; ip neigh add 192.0.2.2 lladdr $mac dev slow0
ip route add default via 192.0.2.2 dev slow0 table 100
before=0; lazy=no
while :; do
  now=$(cat /sys/class/net/DEVICE/statistics/tx_bytes)
  if [ $((now - before)) -gt LEAST ]; then
    [ $lazy = yes ] || ip rule add iif lo pref 10 lookup 100; lazy=yes
  else
    [ $lazy = no ] || ip rule del iif lo pref 10; lazy=no
  fi
  before=$now; sleep 0.5
done
"""
"""A router that answers late, through a queue of its own, while it forwards over `LEAST` bytes in half a second."""


def _slow(trial: Trial) -> Lab:
    dice = trial.dice()
    planted, hop = dice.choice(OF_ROUTERS), dice.choice((1, 2, 3))
    device = f"to-{CHAIN[hop + 1] if planted.direction == 'up' else CHAIN[hop - 1]}"
    least = round(trial.rate_mbit * 1e6 / 8 / 2 * 0.4)
    setup = {f"r{hop}": SLOW.replace("DEVICE", device).replace("LEAST", str(least))}
    return Lab(
        chain(trial, {planted.port: drop_tail(trial)}), planted.phase, _beside(planted, hop), (planted,), setup=setup
    )


BRIDGE = """
ip link add modem type bridge
for name in to-r1 to-r2; do ip addr flush dev $name; ip link set $name master modem; done
ip link set modem up
"""


def _modem(trial: Trial) -> Lab:
    """The router's modem is a bridge, which no TTL shows."""
    ways = (Planted("m>r2", "up", "router_uplink", 2), Planted("m>r1", "down", "access_downlink", 2))
    planted = trial.dice().choice(ways)
    nodes = ("h1", "r1", "m", "r2", "r3", "h2")
    near, far = "02:00:00:00:00:01", "02:00:00:00:00:02"

    def past(own: str, other: str, own_address: str, other_address: str) -> str:
        return (
            # Routes vanish when the device goes down, so they are kept.
            "routes=$(ip -4 route show | grep ' dev to-m' | grep via | cut -d ' ' -f 1)\n"
            f"ip link set dev to-m down; ip link set dev to-m address {own}; ip link set dev to-m up\n"
            f"ip addr add {own_address}/24 dev to-m; ip neigh replace {other_address} lladdr {other} dev to-m\n"
            f"for net in $routes; do ip route replace $net via {other_address} dev to-m; done"
        )

    setup = {
        "m": BRIDGE,
        "r1": past(near, far, "192.0.2.1", "192.0.2.2"),
        "r2": past(far, near, "192.0.2.2", "192.0.2.1"),
    }
    links = chain(trial, {planted.port: drop_tail(trial)}, nodes)
    return Lab(links, planted.phase, names(planted), (planted,), setup=setup)


MODEM = "192.168.100.1"
"""The address of cable modems."""


def _modem_with_address(trial: Trial) -> Lab:
    """As `_modem`, but the modem answers at an address of its own, which distinguishes it from the router."""
    ways = (
        Planted("r1>m", "up", "router_uplink", 2),
        Planted("m>r2", "up", "modem", 2),
        Planted("r2>m", "down", "access_downlink", 2),
    )
    planted = trial.dice().choice(ways)
    # The same network with this queue in place of the other.
    bridged = _modem(trial)
    links = chain(trial, {planted.port: drop_tail(trial)}, ("h1", "r1", "m", "r2", "r3", "h2"))
    gateway = "$(ip -4 route show | sed -n 's/.* via \\([0-9.]*\\) .*/\\1/p' | head -n 1)"
    # The links have no ARP, so each end knows the other.
    modem = (
        f"{BRIDGE}ip link set dev modem address 02:00:00:00:00:03\nip addr add {MODEM}/24 dev modem\n"
        "ip neigh replace 192.168.100.2 lladdr 02:00:00:00:00:01 dev modem\n"
        "ip route replace default via 192.168.100.2"
    )
    router = (
        f"{bridged.setup['r1']}\nip addr add 192.168.100.2/24 dev to-m\n"
        f"ip neigh replace {MODEM} lladdr 02:00:00:00:00:03 dev to-m"
    )
    setup = {**bridged.setup, "m": modem, "r1": router, "h1": f"ip route add {MODEM} via {gateway}"}
    return Lab(links, planted.phase, names(planted), (planted,), setup=setup)


def _asymmetric(trial: Trial) -> Lab:
    """Packets to the client take a detour by a fourth router."""
    detour = (
        Planted("r1>r2", "up", "router_uplink", 2),
        Planted("r2>r3", "up", "hop", 3),
        Planted("r2>r1", "down", "access_downlink", 2),
        Planted("r4>r2", "down", "hop", 3),
        Planted("r3>r4", "down", "hop", 4),
        Planted("h2>r3", "down", "server_qdisc", 5),
    )
    planted = trial.dice().choice(detour)
    queue = {planted.port: drop_tail(trial)}
    links = [*chain(trial, queue), *_link("r3", "r4", 1.0, queue), *_link("r4", "r2", 1.0, queue)]
    # r4 reaches r1 and h1 through r2 in any case.
    detoured = (
        "r4=$(ip -4 neigh show dev to-r4 | head -n 1 | cut -d ' ' -f 1)\n"
        "r2=$(ip -4 neigh show dev to-r2 | head -n 1 | cut -d ' ' -f 1)\n"
        "for net in $(ip -4 route show | grep \"via $r2 \" | cut -d ' ' -f 1); do"
        " ip route replace $net via $r4 dev to-r4; done"
    )
    loose = "for each in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $each; done"
    setup = {"r3": f"{loose}\n{detoured}", "r4": loose, "r2": loose}
    return Lab(links, planted.phase, names(planted), (planted,), setup=setup)


def _jitter(trial: Trial) -> Lab:
    """The first link's delay varies as on Wi-Fi; packets keep their order."""
    dice = trial.dice()
    jitter_ms = dice.choice((2, 4, 8))
    netem = f'qdisc = "netem", delay = "{jitter_ms}ms", jitter = "{jitter_ms}ms", rate = "200mbit", limit = "10000p"'
    radio = f'{{ rate = "200mbit", queue = {{ {netem} }} }}'
    planted = dice.choice((None, *PORTS[1:4], *PORTS[5:]))
    queues = {"h1>r1": radio, "r1>h1": radio}
    if planted is None:
        queues[UPLINK.port] = _bottleneck(trial, '{ qdisc = "pfifo", limit = "2p" }')
        return Lab(chain(trial, queues), UPLINK.phase, _names_nothing)
    queues[planted.port] = drop_tail(trial)
    # The radio itself adds delay under load, because its packets keep their order: `tc` does not see that.
    return Lab(chain(trial, queues), planted.phase, names(planted))


def _others(trial: Trial) -> Lab:
    """Another machine at home uploads all the time."""
    links = [*chain(trial, {UPLINK.port: drop_tail(trial)}), *_link("h3", "r1", 0.1, {})]
    traffic = ["[[traffic]]", 'name = "upload"', 'kind = "tcp"', 'from = "h3"', 'to = "h2"', "flows = 2"]

    def is_right(phase: PhaseVerdict) -> bool:
        return ends_as("other_traffic")(phase) or names(UPLINK)(phase)

    return Lab(links, UPLINK.phase, is_right, traffic=traffic)


def _send_buffer(trial: Trial) -> Lab:
    """The load leaves its send buffers to the kernel, which lets them grow."""
    planted = trial.dice().choice((PORTS[2], PORTS[6]))
    end = "client" if planted.direction == "up" else "server"

    def is_right(phase: PhaseVerdict) -> bool:
        buffers = [each["place"] for answer in phase["send_buffers"] for each in answer["locations"]]
        return names(planted)(phase) and buffers == [f"{end}_send_buffer"]

    links = chain(trial, {planted.port: drop_tail(trial)})
    return Lab(
        links, planted.phase, is_right, (planted,), options=("--kernel-send-buffer", "--flows", str(trial.flows))
    )


@dataclass(frozen=True)
class Kind:
    """A kind of trial."""

    text: str
    """What is planted."""
    lab: Callable[[Trial], Lab]
    engines: Sequence[str] = ("guest", "host")
    is_drawn: bool = True
    """Whether seeds draw it. What was added later is asked for by name, so that each seed keeps its trial."""


GUEST = ("guest",)
"""What needs a discipline, a ring or a jitter that only the guest's kernel is sure to have."""
KINDS: Mapping[str, Kind] = {
    **{planted.port: Kind("a drop-tail queue at this port", _port(planted)) for planted in PORTS},
    "clean": Kind("a queue of two packets: nothing to name", _clean),
    "ring": Kind("the ring of the client's card, without BQL", _ring, GUEST),
    "ring with BQL": Kind("a drop-tail queue above a ring with BQL, at the client", _ring_with_bql, GUEST),
    "ring and qdisc": Kind("a ring without BQL and a queue above it, at the client", _ring_and_qdisc, GUEST),
    "both ways": Kind("queues at `r1>r2` and `r2>r1`, loaded together", _both_ways),
    "fq_codel": Kind("fq_codel at `r1>r2`", _managed("fq_codel"), GUEST),
    "cake": Kind("cake at `r1>r2`", _managed("cake"), GUEST),
    "policer": Kind("a token bucket without a queue at `r1>r2`", _policer),
    "window": Kind("receivers with small windows", _window),
    "burst": Kind("a shaper with a burst of 16 to 64 kB at `r1>r2`", _burst),
    "rate-limited routers": Kind("a queue at any port; routers answer every third second", _rate_limited),
    "silent router": Kind("a queue at any router; one router never answers", _silent),
    "slow router": Kind("a queue at any router; one router answers late under load", _slow),
    "bridged modem": Kind("a queue in a modem that no TTL shows", _modem),
    "asymmetric": Kind("a queue on a path whose way back has one router more", _asymmetric),
    "jitter": Kind("a first link with jitter; a queue at any other port, or none", _jitter, GUEST),
    "others": Kind("a queue at `r1>r2` that another machine at home fills all the time", _others),
    "send buffer": Kind("a queue at `r2>r3` or `r3>r2`; the load's send buffers may grow", _send_buffer),
    "modem with address": Kind(
        "a queue in the router, in a bridged modem or at the provider; the modem answers",
        _modem_with_address,
        is_drawn=False,
    ),
}


def drawn(seed: int, engine: str, kind: str | None = None) -> Trial:
    """The trial of a seed; `kind` is one that seeds do not draw."""
    kinds = [name for name, each in KINDS.items() if each.is_drawn and engine in each.engines]
    if kind is not None and not KINDS[kind].is_drawn:
        kinds = [kind]
    dice = random.Random(seed)
    # A guest computes each packet, so slow links are chosen for it; in namespaces, time passes anyway.
    fastest = 1.2 if engine == "guest" else 2.0
    return Trial(
        seed=seed,
        kind=kinds[seed % len(kinds)],
        rate_mbit=round(10 ** dice.uniform(0, fastest), 1),
        rtt_ms=round(10 ** dice.uniform(0.7, 2.08), 1),
        buffer_ms=round(10 ** dice.uniform(1.6, 2.9), 0),
        flows=dice.choice((2, 4, 8)),
    )
