"""A network's drawing: what it says, where nodes stand, and that labels can be read whatever the network looks like."""

import copy
import itertools
from collections.abc import Sequence

import pytest
from handmade import PING, TCP, WEB, HandmadeResult, HandmadeRun, pfifo, scenario, sweep
from hypothesis import given
from hypothesis import strategies as st

from bufferscope.base.fmt import NBSP, THIN
from bufferscope.figures.source import points
from bufferscope.report.layout import positions
from bufferscope.report.plotting import NODE_HEIGHT, WIDEST, Drawing, view
from bufferscope.report.topology import DrawnLink, DrawnNetwork, Lane, network

Joined = list[tuple[str, str]]
WORDS = ("10 Mbit/s", "5 ms", "pfifo of 100 packets")


def made(links: Joined, *ways: str) -> DrawnNetwork:
    """A network of links with three lines of text each; a way is its nodes, one letter each."""
    nodes = tuple(dict.fromkeys(name for link in links for name in link))
    return DrawnNetwork(
        nodes, tuple(DrawnLink(link, WORDS) for link in links), tuple(Lane(tuple(way), way) for way in ways)
    )


def layers(links: Joined, *ways: str) -> dict[str, int]:
    drawn = made(links, *ways)
    found = positions(drawn.nodes, links, [lane.nodes for lane in drawn.lanes])
    return {name: layer for name, (layer, _) in found.items()}


CHAIN: Joined = [("a", "b"), ("b", "c"), ("c", "d")]
DUMBBELL: Joined = [("a", "r"), ("b", "r"), ("r", "s"), ("s", "c"), ("s", "d")]
STAR: Joined = [("x", leaf) for leaf in "abcdefghijk"]
RING: Joined = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "a")]


def test_a_chain_stands_in_the_order_of_its_traffic() -> None:
    assert layers(CHAIN, "dcba") == {"d": 0, "c": 1, "b": 2, "a": 3}


def test_senders_stand_before_the_routers_and_receivers_behind() -> None:
    assert layers(DUMBBELL, "arsc", "brsd") == {"a": 0, "b": 0, "r": 1, "s": 2, "c": 3, "d": 3}


def test_two_ways_of_the_same_length_stand_side_by_side() -> None:
    assert layers(RING, "abcd") == {"a": 0, "b": 1, "f": 1, "c": 2, "e": 2, "d": 3}


def test_a_network_without_traffic_is_drawn_along_its_longest_way() -> None:
    assert sorted(layers(CHAIN).values()) == [0, 1, 2, 3]


def boxes_of(drawing: Drawing) -> list[tuple[str, float, float, float, float]]:
    """All labels and nodes: name, left, top, right, bottom."""
    labels = [(" ".join(t.lines), t.left, t.top, t.left + t.width, t.top + t.height) for t in drawing.texts]
    nodes = [
        (b.name, b.x - b.width / 2, b.y - NODE_HEIGHT / 2, b.x + b.width / 2, b.y + NODE_HEIGHT / 2)
        for b in drawing.boxes
    ]
    return labels + nodes


def overlapping(drawing: Drawing) -> list[tuple[str, str]]:
    return [
        (one[0], other[0])
        for one, other in itertools.combinations(boxes_of(drawing), 2)
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]


@pytest.mark.parametrize(
    ("links", "ways"),
    [
        ([("a", "b")], ["ab"]),
        (CHAIN, ["abcd", "dcba"]),
        (DUMBBELL, ["arsc", "brsd"]),
        (STAR, ["axb", "cxb", "dxk"]),
        (RING, ["abcd"]),
        ([(a, b) for a, b in itertools.pairwise("abcdefghijkl")], ["abcdefghijkl"]),
    ],
    ids=["pair", "chain", "dumbbell", "star", "ring", "twelve"],
)
def test_nothing_stands_on_anything_else(links: Joined, ways: Sequence[str]) -> None:
    for drawing in view(made(links, *ways)).drawings:
        assert overlapping(drawing) == [], drawing.direction
        for name, left, top, right, bottom in boxes_of(drawing):
            assert drawing.left <= left <= right <= drawing.left + drawing.width, name
            assert drawing.top <= top <= bottom <= drawing.top + drawing.height, name


@st.composite
def connected(draw: st.DrawFn) -> DrawnNetwork:
    """Any connected network of 2 to 12 nodes, and traffic over some of its links."""
    names = "abcdefghijkl"[: draw(st.integers(2, 12))]
    links = {(names[draw(st.integers(0, n - 1))], names[n]) for n in range(1, len(names))}
    more = draw(st.lists(st.sampled_from(list(itertools.combinations(names, 2))), max_size=6))
    return made(sorted(links | set(more)), *(f"{one}{other}" for one, other in sorted(links)[:3]))


@given(connected())
def test_any_network_is_drawn_whole_within_its_frame(drawn: DrawnNetwork) -> None:
    drawings = view(drawn).drawings
    assert drawings
    for drawing in drawings:
        assert {box.name for box in drawing.boxes} == set(drawn.nodes)
        assert len(drawing.links) == len(drawing.texts) == len(drawn.links)
        places_taken = [(box.x, box.y) for box in drawing.boxes]
        assert len(places_taken) == len(set(places_taken))
        assert "nan" not in " ".join(line.d for line in (*drawing.links, *drawing.lanes))


def test_what_has_no_room_across_is_drawn_down_only() -> None:
    long = [(a, b) for a, b in itertools.pairwise("abcdefghijkl")]
    assert [drawing.direction for drawing in view(made(long)).drawings] == ["down"]
    both = view(made(CHAIN)).drawings
    assert [drawing.direction for drawing in both] == ["across", "down"]
    assert both[0].width <= WIDEST
    assert both[1].width <= 360  # a phone's page


def words_of(result: HandmadeResult) -> dict[tuple[str, str], tuple[str, ...]]:
    return {
        link.ends: tuple(line.replace(NBSP, " ").replace(THIN, " ") for line in link.words)
        for link in network(points(result)).links
    }


def test_a_link_says_rate_delay_and_the_limits_of_all_points() -> None:
    result = sweep(["50p", "100p"], lambda label: HandmadeRun(scenario({"bulk": TCP}, queue=pfifo(int(label[:-1])))))
    assert words_of(result) == {
        ("h1", "r1"): ("no rate limit", "5 ms"),
        ("r1", "h2"): ("10 Mbit/s", "5 ms", "pfifo of 50 or 100 packets"),
    }


def test_directions_that_differ_are_told_apart() -> None:
    network_ = scenario({"bulk": TCP}, rate=[(0, 100_000_000), (10**9, 1_000_000)])
    back = network_["links"][1]["reverse"]
    back["rate"], back["queue"] = [{"from_ns": 0, "bits_per_second": 1_000_000}], {"qdisc": "codel"}
    back["ring"] = {"size_packets": 256, "bql": {"hold_ns": 10**9, "min_bytes": 0, "max_bytes": 10**9}}
    assert words_of(HandmadeResult([HandmadeRun(network_)]))["r1", "h2"] == (
        "to h2: 100, 1 Mbit/s in turn",
        "to r1: 1 Mbit/s",
        "5 ms",
        "to h2: pfifo of 100 packets",
        "to r1: codel",
        "to h2: no ring",
        "to r1: ring of 256 packets with BQL",
    )


def test_a_rate_of_many_steps_is_told_by_its_range() -> None:
    steps = [(n * 10**9, (n + 1) * 1_000_000) for n in range(60)]
    words = words_of(HandmadeResult([HandmadeRun(scenario({"bulk": TCP}, rate=steps))]))
    assert words["r1", "h2"][0] == "1 Mbit/s to 60 Mbit/s, changing"


def test_traffic_between_the_same_nodes_shares_a_lane() -> None:
    both = scenario({"bulk": TCP, "ping": PING, "web": WEB})
    both["traffic"].append(copy.deepcopy(both["traffic"][0]) | {"name": "back", "from": 2, "to": 0})
    drawn = network(points(HandmadeResult([HandmadeRun(both)])))
    assert [lane.words for lane in drawn.lanes] == ["bulk (tcp), ping, web: h1 → h2", "back (tcp): h2 → h1"]
    assert drawn.lanes[1].nodes == ("h2", "r1", "h1")
    assert "h1 to r1: no rate limit" in drawn.words


def test_a_link_with_many_values_has_a_label_of_a_few_lines() -> None:
    words = ("rate: " + ", ".join(f"{number} Mbit/s" for number in range(1, 61)), "5 ms", "pfifo of 100 packets")
    drawn = view(DrawnNetwork(("a", "b"), (DrawnLink(("a", "b"), words),), (Lane(("a", "b"), "a to b"),)))
    for drawing in drawn.drawings:
        (label,) = drawing.texts
        assert len(label.lines) <= 8
        assert any(line.endswith("…") for line in label.lines)
        assert "pfifo" in " ".join(label.lines)
