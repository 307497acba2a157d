"""Draws scenarios with a planted cause, from a seed alone: it is independent of the explanation.

The network is h1 - r1 - r2 - h2. Data goes from h1 to h2 or back; one of the three links is the slowest. Rates, delays,
buffers, congestion controls, numbers of flows and cross traffic are random.
"""

import random
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

LINKS = ("lan", "wan", "home")
NODES = ("h1", "r1", "r2", "h2")
CONTROLS = ("cubic", "cubic", "cubic", "reno", "reno", "westwood", "bbr")
FRAME_BITS = 1514 * 8
JUDGE = "judge"
"""The ping that the criterion reads; the records that are explained may lack it."""
Document = dict[str, Any]
"""An experiment file."""


@dataclass(frozen=True)
class Planted:
    """A scenario with a cause, and the same without it."""

    kind: str
    """The kind of scenario: a cause, or one of those that `combining` draws."""
    cause: str
    port: str | None
    """Where the cause is, if it is in a port."""
    layer: str | None
    """Its layer, if it is a queue."""
    document: Document
    without: Document
    """The same without the cause."""
    words: str
    """What was planted, for a table."""
    path_ms: float
    """The base RTT."""
    full_mbit: float
    """The slowest link's rate if flows try to take all of it; 0 for light traffic."""
    has_ping: bool
    """Whether the explained records have the ping of the criterion."""


class Draw:
    """One scenario while it is drawn."""

    def __init__(self, dice: random.Random) -> None:
        """Draw everything but the cause."""
        self.dice = dice
        self.rate_bps = round(logarithmic(dice, 2e6, 50e6), -3)
        self.delays_ms = self._delays(logarithmic(dice, 10, 120))
        self.slow = dice.choice(LINKS)
        self.is_download = dice.random() < 0.5
        self.side, self.other_side = ("forward", "reverse") if self.is_download else ("reverse", "forward")
        self.flows = dice.choice((1, 1, 1, 2, 3, 4))
        self.control = dice.choice(CONTROLS)
        self.has_ping = dice.random() < 0.8
        self.others = {name: round(self.rate_bps * logarithmic(dice, 4, 20), -3) for name in LINKS}

    def _delays(self, round_trip_ms: float) -> dict[str, float]:
        parts = [self.dice.random() + 0.05 for _ in LINKS]
        return {name: round_trip_ms / 2 * part / sum(parts) for name, part in zip(LINKS, parts, strict=True)}

    @property
    def path_ms(self) -> float:
        """The round trip of propagation."""
        return 2 * sum(self.delays_ms.values())

    @property
    def held_packets(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps * self.path_ms / 1e3 / FRAME_BITS

    @property
    def port(self) -> str:
        """The slowest port on the way of the data."""
        number = LINKS.index(self.slow)
        ends = NODES[number : number + 2]
        return ">".join(ends if self.is_download else ends[::-1])

    def packets(self, least: float, most: float) -> int:
        """A number of packets, in bandwidth-delay products."""
        return max(4, round(self.held_packets * logarithmic(self.dice, least, most)))

    def document(self, slow: Mapping[str, Any], bulk: Mapping[str, Any]) -> Document:
        """The experiment with these settings of the slowest port and of the bulk traffic."""
        links = []
        for number, name in enumerate(LINKS):
            rate = self.rate_bps if name == self.slow else self.others[name]
            link: Document = {
                "name": name,
                "ends": list(NODES[number : number + 2]),
                "delay": f"{round(self.delays_ms[name] * 1e3)}us",
                "rate": f"{round(rate)}bit",
            }
            if name == self.slow:
                link[self.side] = dict(slow)
            links.append(link)
        sender, receiver = ("h1", "h2") if self.is_download else ("h2", "h1")
        ends = {"from": sender, "to": receiver}
        traffic: list[Document] = [{"name": "bulk", "kind": "tcp", **ends, "congestion": self.control, **bulk}]
        traffic.append({"name": JUDGE, "kind": "ping", "from": "h1", "to": "h2", "interval": "97ms"})
        return {"title": "planted", "duration": "30s", "warmup": "10s", "link": links, "traffic": traffic}

    def with_cross_traffic(self, document: Document) -> Document:
        """The experiment with other traffic: pages, a call, datagrams, look-ups, or none."""
        ends = {"from": "h1", "to": "h2"}
        twentieth = f"{round(self.rate_bps / 20)}bit"
        page = {"name": "pages", "kind": "web", **ends, "interval": "7s", "bytes": f"{round(self.rate_bps / 80)}b"}
        known: list[Document] = [
            {"name": "call", "kind": "voip", **ends},
            {"name": "datagrams", "kind": "udp", **ends, "rate": twentieth, "pattern": "poisson"},
            {"name": "names", "kind": "dns", **ends, "interval": "700ms", "pattern": "poisson"},
            page,
        ]
        chosen = [each for each in known if self.dice.random() < 0.3]
        return {**document, "traffic": [*document["traffic"], *chosen]}


def logarithmic(dice: random.Random, least: float, most: float) -> float:
    """Uniform on a logarithmic scale."""
    return float(least * (most / least) ** dice.random())


def _queue(draw: Draw) -> Planted:
    packets = draw.packets(3, 12)
    kind = draw.dice.choice(("pfifo", "bfifo"))
    limit = f"{packets}p" if kind == "pfifo" else f"{packets * 1514}b"
    bulk = {"flows": draw.flows}
    document = draw.with_cross_traffic(draw.document({"queue": {"qdisc": kind, "limit": limit}}, bulk))
    cured = setting(document, draw, queue={"qdisc": "fq_codel"})
    return made("queue", "queue", draw, document, cured, f"{kind} of {packets} packets", layer="qdisc")


def _ring(draw: Draw) -> Planted:
    size = draw.dice.choice((64, 128, 256, 512, 1024))
    queue = {"qdisc": draw.dice.choice(("fq_codel", "codel", "cake"))}
    ring = {"size": f"{size}p", "bql": False}
    bulk = {"flows": draw.flows}
    document = draw.with_cross_traffic(draw.document({"queue": queue, "ring": ring}, bulk))
    cured = setting(document, draw, ring={**ring, "bql": True})
    return made("ring", "ring", draw, document, cured, f"ring of {size} under {queue['qdisc']}", layer="ring")


def _window(draw: Draw) -> Planted:
    part = logarithmic(draw.dice, 0.1, 0.6)
    packets = draw.held_packets * part / draw.flows
    kind = draw.dice.choice(("rmem_max", "wmem_max", "fixed"))
    bulk: Document = {"flows": draw.flows}
    if kind == "fixed":
        bulk |= {"congestion": "window", "window": f"{max(2, round(packets))}p"}
    document = draw.with_cross_traffic(draw.document({"queue": _short(draw)}, bulk))
    without = deepcopy(document)
    if kind == "fixed":
        del without["traffic"][0]["window"]
        without["traffic"][0]["congestion"] = "cubic"
    else:
        host = document["traffic"][0]["from" if kind == "wmem_max" else "to"]
        size = f"{max(4096, round(packets * 1448 * 2))}b"
        memory = {kind: size, kind.replace("max", "default"): size}
        document["host"] = [{"name": host, "tcp": memory}]
    return made("window", "window", draw, document, without, f"{kind} for {part:.2f} BDP")


def _application(draw: Draw) -> Planted:
    part = logarithmic(draw.dice, 0.1, 0.6)
    bulk: Document = {"flows": draw.flows, "rate": f"{round(draw.rate_bps * part / draw.flows)}bit"}
    document = draw.with_cross_traffic(draw.document({"queue": _short(draw)}, bulk))
    without = deepcopy(document)
    del without["traffic"][0]["rate"]
    return made("application", "application", draw, document, without, f"writes {part:.2f} of the rate")


def _loss(draw: Draw) -> Planted:
    share = logarithmic(draw.dice, 0.002, 0.05)
    lossy = draw.dice.choice(LINKS)
    wire: Document = {"loss": share}
    if draw.dice.random() < 0.3:
        wire = {"gemodel": {"p": share / 3, "r": 0.33}}
    document = draw.with_cross_traffic(draw.document({"queue": _short(draw)}, {"flows": draw.flows}))
    without = deepcopy(document)
    link = document["link"][LINKS.index(lossy)]
    link.setdefault(draw.side, {})["wire"] = wire
    ends = link["ends"] if draw.is_download else link["ends"][::-1]
    return made("loss", "loss", draw, document, without, f"{100 * share:.2g} % lost", port=">".join(ends))


def _shaper(draw: Draw) -> Planted:
    packets = draw.packets(3, 12)
    bulk = {"flows": draw.flows}
    rate = f"{round(draw.rate_bps)}bit"
    if draw.dice.random() < 0.5:
        queue: Document = {"qdisc": "tbf", "rate": rate, "burst": "3kb", "limit": f"{packets * 1514}b"}
        cured: Document = {**queue, "inner": {"qdisc": "fq_codel"}}
    else:
        leaf = {"rate": rate, "inner": {"qdisc": "pfifo", "limit": f"{packets}p"}}
        queue = {"qdisc": "htb", "default": "all", "class": {"all": leaf}}
        cured = {**queue, "class": {"all": {**leaf, "inner": {"qdisc": "fq_codel"}}}}
    wire = {"rate": f"{round(draw.rate_bps * logarithmic(draw.dice, 1.5, 10))}bit"}
    document = draw.with_cross_traffic(draw.document({"queue": queue, **wire}, bulk))
    without = setting(document, draw, queue=cured)
    return made("shaper", "shaper", draw, document, without, f"{queue['qdisc']} with {packets} packets", layer="qdisc")


def _none(draw: Draw) -> Planted:
    queue = {"qdisc": draw.dice.choice(("fq_codel", "cake", "codel", "fq_pie"))}
    document = draw.with_cross_traffic(draw.document({"queue": queue}, {"flows": draw.flows}))
    words = f"{queue['qdisc']}, {draw.flows} flows"
    is_light = draw.dice.random() < 0.25
    if is_light:
        document["traffic"] = document["traffic"][1:]
        words = "light traffic"
    found = made("none", "none", draw, document, document, words)
    return replace(found, full_mbit=0.0) if is_light else found


PLANTERS = {
    "queue": _queue,
    "ring": _ring,
    "window": _window,
    "application": _application,
    "loss": _loss,
    "shaper": _shaper,
    "none": _none,
}


def _short(draw: Draw) -> Document:
    """A queue that is not the cause: with an AQM, or tail drop of one bandwidth-delay product."""
    limit = f"{max(10, round(draw.held_packets))}p"
    return draw.dice.choice(({"qdisc": "fq_codel"}, {"qdisc": "cake"}, {"qdisc": "pfifo", "limit": limit}))


def setting(document: Document, draw: Draw, **settings: Mapping[str, Any]) -> Document:
    """The experiment with other settings of the slowest port."""
    changed = deepcopy(document)
    changed["link"][LINKS.index(draw.slow)][draw.side].update(settings)
    return changed


def made(
    kind: str,
    cause: str,
    draw: Draw,
    document: Document,
    without: Document,
    words: str,
    *,
    layer: str | None = None,
    port: str | None = None,
) -> Planted:
    """The scenario; a queue is at the slowest port, unless another one is named."""
    return Planted(
        kind,
        cause,
        port or (draw.port if layer else None),
        layer,
        document,
        without,
        words,
        draw.path_ms,
        draw.rate_bps / 1e6,
        draw.has_ping,
    )
