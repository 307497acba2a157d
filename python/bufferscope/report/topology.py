"""An experiment's network as a drawing: nodes, what each link does to packets, and where the traffic goes.

`network` collects what is drawn, `layout` places the nodes, and `plotting` turns both into lines and labels. If the
points of a sweep differ, a label names all settings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bufferscope.base.fmt import NBSP, number, plural, quantity
from bufferscope.figures.source import PlottedPoint
from bufferscope.model.directions import SIDES
from bufferscope.model.network import Port, path, ports, traffic_ends
from bufferscope.model.scenario import Qdisc, Ring, Scenario, Traffic, Wifi

MOST_STEPS = 8
"""If a rate changes more often than this, the label gives its range."""
MOST_SETTINGS = 4
"""If a sweep has more settings than this, the label does not name all of them."""

WITHOUT = ("no rate limit", "no delay", "no queue", "no ring")
"""The label of a port that has no rate, delay, queue or ring."""


@dataclass(frozen=True)
class DrawnLink:
    """Two linked nodes, and what happens to packets between them, in lines of text."""

    ends: tuple[str, str]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Lane:
    """All traffic from one node to another."""

    nodes: tuple[str, ...]
    """The nodes that its packets cross, the sender first."""
    words: str


@dataclass(frozen=True)
class DrawnNetwork:
    """What a drawing shows."""

    nodes: tuple[str, ...]
    links: tuple[DrawnLink, ...]
    lanes: tuple[Lane, ...]

    @property
    def words(self) -> str:
        """The drawing in words, for readers who can't see it."""
        links = "; ".join(f"{' to '.join(link.ends)}: {', '.join(link.words)}" for link in self.links)
        lanes = "; ".join(f"{lane.words} via {', '.join(lane.nodes)}" for lane in self.lanes)
        return f"{plural(len(self.nodes), 'node')}. Links: {links}." + (f" Traffic: {lanes}." if lanes else "")


def network(points: Sequence[PlottedPoint]) -> DrawnNetwork:
    """The network that an experiment's points share, with the settings of all of them."""
    scenarios = [point.first.scenario for point in points]
    nodes = dict.fromkeys(node["name"] for scenario in scenarios for node in scenario["nodes"])
    return DrawnNetwork(tuple(nodes), tuple(_links(scenarios)), tuple(_lanes(scenarios)))


def _links(scenarios: Sequence[Scenario]) -> list[DrawnLink]:
    found: dict[str, list[tuple[Port, str]]] = {}
    for scenario in scenarios:
        for port, below in zip(ports(scenario).values(), _below_queues(scenario), strict=True):
            found.setdefault(port.name, []).append((port, below))
    names = list(found)
    return [_link(found[there], found[back]) for there, back in zip(names[::2], names[1::2], strict=True)]


def _link(there: Sequence[tuple[Port, str]], back: Sequence[tuple[Port, str]]) -> DrawnLink:
    forward = there[0][0]
    lines = []
    for one, other, none in zip(_settings(there), _settings(back), WITHOUT, strict=True):
        if one == other:
            lines.append(one)
        else:
            lines += [f"to {forward.receiver}: {one or none}", f"to {forward.sender}: {other or none}"]
    return DrawnLink((forward.sender, forward.receiver), tuple(line for line in lines if line))


def _settings(variants: Sequence[tuple[Port, str]]) -> tuple[str, str, str, str]:
    """Rate, delay, queue and ring or radio of a port at all points; a part that it does not have is empty."""
    if all(port.is_unknown for port, _ in variants):
        return "not known", "", "", ""
    with_rate = [(port, below) for port, below in variants if port.rate]
    return (
        _any_of(_rate(port) for port, _ in variants),
        _any_of(quantity(port.delay_ns, "ns") if port.delay_ns else WITHOUT[1] for port, _ in variants),
        _queues([port.queue for port, _ in with_rate]),
        _any_of(below for _, below in with_rate),
    )


def _any_of(texts: Iterable[str]) -> str:
    """`a, b or c`: the different texts if they are few, otherwise the first and the number of others."""
    distinct = list(dict.fromkeys(text for text in texts if text))
    if len(distinct) > MOST_SETTINGS:
        return f"{distinct[0]} and {len(distinct) - 1} others"
    return " or ".join(filter(None, [", ".join(distinct[:-1]), *distinct[-1:]]))


def _rate(port: Port) -> str:
    """`10 Mbit/s`; one that changes: `100, 10, 1 Mbit/s in turn`; one with a boost: `10, 2 Mbit/s with a boost`."""
    if not port.rate:
        return WITHOUT[0]
    rates = [quantity(step.bits_per_second, "bps") for step in port.rate]
    if port.variation:
        return f"{port.variation}, {rates[0]} on average"
    if len(rates) == 1:
        return f"{_same_units([quantity(port.boost.rate_bps, 'bps'), *rates])} with a boost" if port.boost else rates[0]
    if len(rates) > MOST_STEPS:
        bits = [step.bits_per_second for step in port.rate]
        return f"{quantity(min(bits), 'bps')} to {quantity(max(bits), 'bps')}, changing"
    return f"{_same_units(rates)} in turn"


def _same_units(texts: Sequence[str]) -> str:
    """The quantities in a list; if all have the same unit, it stands only at the end."""
    split = [text.rpartition(NBSP) for text in texts]
    if len({unit for _, _, unit in split}) == 1:
        return ", ".join(value for value, _, _ in split) + NBSP + split[0][2]
    return ", ".join(texts)


def _queues(queues: Sequence[Qdisc]) -> str:
    """`pfifo of 50, 100 or 200 packets, codel of 1000 packets`."""
    limits: dict[str, dict[str, None]] = {}
    for queue in queues:
        known = limits.setdefault(queue["qdisc"], {})
        for unit in ("packets", "bytes"):
            if isinstance(limit := queue.get(f"limit_{unit}"), int):
                known[quantity(limit, unit)] = None
    return ", ".join(f"{qdisc} of {_alternatives(list(known))}" if known else qdisc for qdisc, known in limits.items())


def _alternatives(texts: Sequence[str]) -> str:
    """`5, 20 or 100 packets`; of many texts, only the first and the last in the order of the sweep."""
    if len(texts) > MOST_SETTINGS:
        return f"{texts[0]} to {texts[-1]}"
    shared = _same_units(texts)
    head, _, last = shared.rpartition(", ")
    return f"{head} or {last}" if head else last


def _below_queues(scenario: Scenario) -> list[str]:
    """For each port, the ring or the radio below its queue."""
    found = [_ring(link[side].get("ring")) for link in scenario["links"] for side in SIDES]
    for network in scenario.get("wifi", []):
        words = f"Wi-Fi {network['name']}, {_driver(network)}"
        for station in network["stations"]:
            first = station["link"] * len(SIDES)
            found[first : first + len(SIDES)] = [words] * len(SIDES)
    return found


def _driver(network: Wifi) -> str:
    """Where the packets of a Wi-Fi network wait below the queueing disciplines."""
    queueing = network["queueing"]
    if queueing["kind"] == "fifo":
        return f"driver of {number(queueing['size_packets'])} packets"
    return "queues of mac80211" + (" with airtime fairness" if queueing["airtime_fairness"] else "")


def _ring(ring: Ring | None) -> str:
    if not ring:
        return ""
    return f"ring of {number(ring['size_packets'])} packets{' with BQL' if ring.get('bql') else ''}"


def _lanes(scenarios: Sequence[Scenario]) -> list[Lane]:
    """One lane for all traffic from one node to another, along the path on which the engines route it."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    ways: dict[tuple[str, str], tuple[str, ...]] = {}
    for scenario in scenarios:
        for entry in scenario["traffic"]:
            ends = traffic_ends(scenario, entry)
            found.setdefault(ends, {})[_traffic(entry)] = None
            ways[ends] = (ends[0], *(port.receiver for port in path(scenario, *ends)))
    return [Lane(ways[ends], f"{', '.join(words)}: {ends[0]} → {ends[1]}") for ends, words in found.items()]


def _traffic(entry: Traffic) -> str:
    """`bulk (tcp)`; only `ping` if name and kind are the same."""
    name, kind = entry["name"], entry["kind"]
    return name if name == kind else f"{name} ({kind})"
