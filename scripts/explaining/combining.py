"""Draws scenarios that combine several effects, one of which could be mistaken for the cause.

As in `planting`, the generator is independent of the explanation.

- **ack filter**: cake removes acknowledgements of a download, whose goodput does not suffer. Nothing is wrong.
- **loss without delay**: pings are lost on a wire, or in a queue of a few packets, whose delay is short.
- **several ports**: two ports on the pings' path have a standing queue; the larger one is the cause.
- **two directions**: an upload and a download each fill the queue of their own direction; the larger one is the cause.
- **warm-up**: there was a standing queue during the warm-up, but not afterwards. Nothing is wrong.
"""

from copy import deepcopy
from dataclasses import replace

from planting import FRAME_BITS, JUDGE, LINKS, NODES, Document, Draw, Planted, logarithmic, made, setting

LARGER = 2.0
"""How much longer the planted queue may get than the other one, at least."""
SIDES = ("forward", "reverse")


def ack_filter(draw: Draw) -> Planted:
    """A download beside an upload, whose discipline removes acknowledgements of the download."""
    draw = _steady(draw)
    filters = draw.dice.choice(("ack-filter", "ack-filter-aggressive"))
    share = draw.dice.choice((1.0, logarithmic(draw.dice, 0.5, 0.9)))
    down: Document = {"queue": {"qdisc": "cake"}}
    if share < 1:
        down["queue"]["bandwidth"] = f"{round(draw.rate_bps * share)}bit"
    document = draw.document(down, {"flows": draw.flows})
    up_bps = draw.rate_bps * logarithmic(draw.dice, 0.04, 0.1)
    link = document["link"][LINKS.index(draw.slow)]
    link[draw.other_side] = {"rate": f"{round(up_bps)}bit", "queue": {"qdisc": "cake", "ack_filter": filters}}
    document["traffic"].append(_back(document, "back", draw))
    without = deepcopy(document)
    without["link"][LINKS.index(draw.slow)][draw.other_side]["queue"] = {"qdisc": "cake"}
    words = f"cake {filters} at {up_bps / draw.rate_bps:.2f} of the rate, shaped to {share:.2f}"
    return replace(made("ack filter", "none", draw, document, without, words), full_mbit=share * draw.rate_bps / 1e6)


def loss_without_delay(draw: Draw) -> Planted:
    """Lossy wires under light traffic, or a queue of a few packets under too much of it."""
    draw.has_ping = True
    if draw.dice.random() < 0.5:
        lossy, side = draw.dice.choice(LINKS), draw.dice.choice(SIDES)
        share = logarithmic(draw.dice, 0.04, 0.2)
        document = draw.with_cross_traffic(draw.document({"queue": {"qdisc": "fq_codel"}}, {}))
        document["traffic"] = document["traffic"][1:]
        without = deepcopy(document)
        link = document["link"][LINKS.index(lossy)]
        link.setdefault(side, {})["wire"] = {"loss": share}
        port = ">".join(link["ends"] if side == "forward" else link["ends"][::-1])
        return made("loss without delay", "loss", draw, document, without, f"{100 * share:.2g} % lost", port=port)
    packets = draw.dice.choice((2, 3, 4))
    rate = f"{round(draw.rate_bps * logarithmic(draw.dice, 1.05, 1.5))}bit"
    document = draw.document({"queue": {"qdisc": "pfifo", "limit": f"{packets}p"}}, {})
    bulk = document["traffic"][0]
    document["traffic"][0] = {
        key: bulk[key] for key in ("name", "from", "to")
    } | {"kind": "udp", "rate": rate, "pattern": "poisson"}  # fmt: skip
    without = setting(document, draw, queue={"qdisc": "fq_codel"})
    return made("loss without delay", "shallow", draw, document, without, f"pfifo of {packets} packets", port=draw.port)


def several_ports(draw: Draw) -> Planted:
    """Two flows that fill queues in two ports, one after the other on the way of the pings."""
    draw.has_ping = True
    draw = _steady(draw)
    first, second = sorted(draw.dice.sample(range(len(LINKS)), 2))
    large = draw.dice.choice((first, second))
    document = draw.document({}, {})
    traffic = [each for each in document["traffic"] if each["name"] == JUDGE]
    limits = {}
    for number in (first, second):
        packets = round((0.15 if number == large else 0.06) * draw.rate_bps / FRAME_BITS * draw.dice.uniform(0.8, 1.2))
        limits[number] = max(12 if number == large else 5, packets)
        side = {"queue": {"qdisc": "pfifo", "limit": f"{limits[number]}p"}, "rate": f"{round(draw.rate_bps)}bit"}
        document["link"][number][draw.side] = side
        near, far = (NODES[number : number + 2]) if draw.is_download else NODES[number : number + 2][::-1]
        # A host that sends into the port itself would be held back by TCP small queues.
        document["link"].append(
            {"name": f"side{number}", "ends": [f"s{number}", near], "rate": "1gbit", "delay": "5ms"}
        )
        flow = {"name": f"flow{number}", "kind": "tcp", "from": f"s{number}", "to": far, "congestion": draw.control}
        traffic.append(flow)
    document["traffic"] = traffic
    without = deepcopy(document)
    without["link"][large][draw.side]["queue"] = {"qdisc": "fq_codel"}
    names = document["link"][large]["ends"]
    port = ">".join(names if draw.is_download else names[::-1])
    words = f"pfifo of {limits[first]} and {limits[second]} packets in a row"
    return made("several ports", "queue", draw, document, without, words, layer="qdisc", port=port)


def two_directions(draw: Draw) -> Planted:
    """An upload and a download over one slow link, each with a queue of its own."""
    draw.has_ping = True
    draw = _steady(draw)
    up_bps = draw.rate_bps * logarithmic(draw.dice, 0.2, 0.8)
    small_s = logarithmic(draw.dice, 0.02, 0.1)
    large_s = small_s * logarithmic(draw.dice, LARGER, 4)
    delays_s = [small_s, large_s]
    draw.dice.shuffle(delays_s)
    down, up = (
        {"rate": f"{round(rate)}bit", "queue": {"qdisc": "pfifo", "limit": f"{max(5, round(rate * s / FRAME_BITS))}p"}}
        for rate, s in zip((draw.rate_bps, up_bps), delays_s, strict=True)
    )
    document = draw.document(down, {"flows": draw.flows})
    number = LINKS.index(draw.slow)
    document["link"][number][draw.other_side] = up
    document["traffic"].append(_back(document, "back", draw))
    without = deepcopy(document)
    is_down = delays_s[0] > delays_s[1]
    large = draw.side if is_down else draw.other_side
    without["link"][number][large]["queue"] = {"qdisc": "fq_codel"}
    port = draw.port if is_down else ">".join(draw.port.split(">")[::-1])
    words = f"pfifo of {1e3 * delays_s[0]:.0f} ms with the data, {1e3 * delays_s[1]:.0f} ms against it"
    return made("two directions", "queue", draw, document, without, words, layer="qdisc", port=port)


def warm_up(draw: Draw) -> Planted:
    """A deep queue that flows fill in the warm-up only; light traffic afterwards."""
    draw.has_ping = True
    packets = draw.packets(3, 12)
    bulk = {"flows": draw.flows, "stop": "6s"}
    document = draw.document({"queue": {"qdisc": "pfifo", "limit": f"{packets}p"}}, bulk)
    document["traffic"].append({"name": "call", "kind": "voip", "from": "h1", "to": "h2"})
    document["warmup"] = "15s"
    found = made("warm-up", "none", draw, document, document, f"pfifo of {packets} packets, filled until 6 s")
    return replace(found, full_mbit=0.0)


PLANTERS = {
    "ack filter": ack_filter,
    "loss without delay": loss_without_delay,
    "several ports": several_ports,
    "two directions": two_directions,
    "warm-up": warm_up,
}


def _steady(draw: Draw) -> Draw:
    """A draw whose flows fill queues in the time of a run."""
    draw.control = draw.dice.choice(("cubic", "reno"))
    return draw


def _back(document: Document, name: str, draw: Draw) -> Document:
    """A flow against the direction of the data."""
    bulk = document["traffic"][0]
    return {"name": name, "kind": "tcp", "from": bulk["to"], "to": bulk["from"], "congestion": draw.control}
