"""The disciplines of random scenarios, with their parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dice import Dice, Table

FULL_BYTES = 1514
LEAST_DEPTH = 4
"""Packets that a queue holds at least. With 2, microseconds decide: two packets of a delayed acknowledgement and one of
a growing window arrive together, and whether one is dropped depends on whether the link has just begun another packet.
In the guest, whose hosts have no jitter, one Reno flow then gets 10.2 Mbit/s of 24 at 7.3 ms (3 runs of 8 s), in the
simulator 6.8 (6 runs), because its hosts take up to 10 us for a packet. With jitter of 20 us on the access link, these
become 8.4 and 8.1 (2 and 4 runs of 5 s). With 3 packets and no jitter they are 18.2 and 18.1, with 4 they are 19.2 and
19.3.
"""


@dataclass(frozen=True)
class Bottleneck:
    """What the parameters of a discipline are chosen by."""

    rate: int
    """In bit/s."""
    rtt_ms: float
    depth: int
    """Packets that the queue holds."""
    is_shared: bool
    """Whether there is traffic besides the long flows and the ping."""


def full_packet_us(rate: int) -> int:
    """The time of a full packet at a rate in bit/s, in microseconds."""
    return round(FULL_BYTES * 8 / rate * 1_000_000)


def _limit(_: Dice, path: Bottleneck) -> Table:
    return {"limit": f"{path.depth}p"}


def _red(dice: Dice, path: Bottleneck) -> Table:
    """Not adaptive: Linux since 5.7 accepts that and adapts nothing, which a warning of the simulator says."""
    most = max(path.depth, 8) * FULL_BYTES
    return {
        "limit": f"{4 * most}b",
        "min": f"{round(most / dice.uniform(2, 4))}b",
        "max": f"{most}b",
        "avpkt": f"{dice.choice([1000, 1500])}b",
        "probability": dice.scaled(0.01, 0.3),
        "bandwidth": f"{path.rate}bit",
        **dice.some(ecn=lambda: True),
    }


def _choke(dice: Dice, path: Bottleneck) -> Table:
    most = max(path.depth, 12)
    keys = {"limit": f"{4 * most}p", "max": f"{most}p", "min": f"{max(1, round(most / dice.uniform(2, 4)))}p"}
    return {
        **keys,
        "bandwidth": f"{path.rate}bit",
        "probability": dice.scaled(0.01, 0.3),
        **dice.some(ecn=lambda: True),
    }


def _sfq(dice: Dice, path: Bottleneck) -> Table:
    depth = min(path.depth, 127)
    some = dice.some(perturb=lambda: f"{dice.randint(2, 20)}s", headdrop=lambda: True)
    return {"depth": f"{depth}p", "limit": f"{min(depth * dice.randint(1, 16), 10_000)}p", **some}


def _codel(dice: Dice, _: Bottleneck) -> Table:
    return dice.some(
        target=lambda: dice.ms(1, 20),
        interval=lambda: dice.ms(20, 300),
        limit=lambda: f"{dice.count(50, 1000)}p",
        ecn=lambda: True,
    )


def _fq_codel(dice: Dice, _: Bottleneck) -> Table:
    return dice.some(
        flows=lambda: dice.choice([1, 16, 256, 1024]),
        target=lambda: dice.ms(1, 20),
        interval=lambda: dice.ms(20, 300),
        quantum=lambda: f"{dice.choice([300, 1514, 3028])}b",
        limit=lambda: f"{dice.count(100, 10_000)}p",
        ecn=lambda: False,
    )


def _pie(dice: Dice, _: Bottleneck) -> Table:
    return dice.some(
        target=lambda: dice.ms(5, 40),
        tupdate=lambda: dice.ms(8, 40),
        limit=lambda: f"{dice.count(50, 1000)}p",
        ecn=lambda: True,
        bytemode=lambda: True,
    )


def _fq_pie(dice: Dice, path: Bottleneck) -> Table:
    some = dice.some(flows=lambda: dice.choice([16, 64, 256]), quantum=lambda: f"{dice.choice([300, 1514, 3028])}b")
    return {**_pie(dice, path), **some}


def _cake(dice: Dice, path: Bottleneck) -> Table:
    shaped: Table = {"bandwidth": f"{round(path.rate * dice.uniform(0.5, 1))}bit"} if dice.chance(0.7) else {}
    return shaped | dice.some(
        rtt=lambda: dice.ms(10, 300),
        diffserv=lambda: dice.choice(["diffserv3", "diffserv4", "diffserv8", "besteffort"]),
        flowmode=lambda: dice.choice(["triple-isolate", "flows", "flowblind", "dual-srchost", "hosts"]),
        ack_filter=lambda: "ack-filter",
        split_gso=lambda: False,
    )


def _fq(dice: Dice, path: Bottleneck) -> Table:
    return dice.some(
        flow_limit=lambda: f"{dice.count(10, 200)}p",
        limit=lambda: f"{max(path.depth, 100)}p",
        quantum=lambda: f"{dice.choice([1514, 3028, 6056])}b",
        maxrate=lambda: f"{round(path.rate * dice.scaled(0.05, 1))}bit",
    )


def _tbf(dice: Dice, path: Bottleneck) -> Table:
    rate, burst = round(path.rate * dice.uniform(0.3, 0.95)), dice.count(3_000, 50_000)
    inner: Table = {"inner": {"qdisc": "codel", **_codel(dice, path)}} if dice.chance(0.3) else {}
    return {"rate": f"{rate}bit", "burst": f"{burst}b", "limit": f"{path.depth * FULL_BYTES}b", **inner}


def _htb(dice: Dice, path: Bottleneck) -> Table:
    ceiling = round(path.rate * dice.uniform(0.3, 0.95))
    inner = dice.choice(["pfifo", "codel", "fq_codel", "pie"])
    leaf: Table = {"parent": "all", "ceil": f"{ceiling}bit"}
    classes: Table = {
        "all": {"rate": f"{ceiling}bit"},
        "rest": {**leaf, "rate": f"{round(ceiling * 0.7)}bit", "inner": {"qdisc": inner, **QUEUES[inner](dice, path)}},
    }
    if not path.is_shared:
        return {"default": "rest", "class": classes}
    classes["others"] = {**leaf, "rate": f"{round(ceiling * 0.3)}bit", "prio": dice.randint(0, 1)}
    chosen = [{"traffic": "ping", "class": "others"}]
    return {"default": "rest", "class": classes, "filter": chosen}


def _prio(dice: Dice, path: Bottleneck) -> Table:
    return {
        "inner": [
            {"qdisc": "pfifo", "limit": f"{max(LEAST_DEPTH, round(path.depth * dice.scaled(0.2, 2)))}p"}
            for _ in range(3)
        ]
    }


def _netem(dice: Dice, path: Bottleneck) -> Table:
    some = dice.some(
        loss=lambda: dice.scaled(0.0003, 0.02),
        duplicate=lambda: dice.scaled(0.0003, 0.01),
        rate=lambda: f"{round(path.rate * dice.uniform(0.5, 1.2))}bit",
    )
    return {"delay": dice.ms(1, 30), "limit": f"{max(path.depth, 20)}p", **some}


QUEUES: Mapping[str, Callable[[Dice, Bottleneck], Table]] = {
    "pfifo": _limit,
    "bfifo": lambda _, path: {"limit": f"{path.depth * FULL_BYTES}b"},
    "pfifo_head_drop": _limit,
    "pfifo_fast": lambda _, __: {},
    "red": _red,
    "choke": _choke,
    "sfq": _sfq,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "fq_pie": _fq_pie,
    "cake": _cake,
    "fq": _fq,
    "tbf": _tbf,
    "htb": _htb,
    "prio": _prio,
    "netem": _netem,
}
"""The parameters of each discipline."""
OWN_RATES = {"tbf": "rate", "htb": "class", "cake": "bandwidth", "fq": "maxrate", "netem": "rate"}
"""The keys with which a discipline sends at a rate of its own, below that of its link."""


def has_own_rate(queue: Table) -> bool:
    """Whether a discipline sends at a rate of its own."""
    return OWN_RATES.get(str(queue["qdisc"])) in queue
