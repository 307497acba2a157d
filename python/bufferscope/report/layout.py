"""The positions of a network's nodes in a drawing: in layers from senders to receivers.

The longest path of any traffic is the spine; each of its nodes has its own layer. Every other node stands one layer
further out than the neighbour from which it is reached: senders before it, receivers behind it. Within a layer, nodes
are sorted by the positions of their neighbours, so that few links cross (the barycentre heuristic of Sugiyama, Tagawa
and Toda, 1981).
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

Position = tuple[int, float]
"""A node's layer, and its position in the layer: 0 is the middle, and neighbours are 1 apart."""


def positions(
    nodes: Sequence[str], links: Iterable[tuple[str, str]], ways: Sequence[Sequence[str]]
) -> dict[str, Position]:
    """A position for each node. `ways` has, for each source, the nodes that its packets cross, the sender first."""
    near: dict[str, list[str]] = {node: [] for node in nodes}
    for one, other in links:
        near[one].append(other)
        near[other].append(one)
    layer = _layers(nodes, near, ways)
    first = min(layer.values())
    rows: dict[int, list[str]] = {}
    for node in layer:
        rows.setdefault(layer[node] - first, []).append(node)
    height: dict[str, float] = {}
    placed: dict[str, Position] = {}
    for number in sorted(rows):
        row = sorted(rows[number], key=lambda node: _mean([height[n] for n in near[node] if n in height]))
        for position, node in enumerate(row):
            height[node] = position - (len(row) - 1) / 2
            placed[node] = number, height[node]
    return placed


def _layers(nodes: Sequence[str], near: Mapping[str, Sequence[str]], ways: Sequence[Sequence[str]]) -> dict[str, int]:
    spine = max(ways, key=len, default=None) or _long_way(nodes[0], near)
    layer = {node: position for position, node in enumerate(spine)}
    outwards: dict[str, int] = {}
    sends = Counter(way[0] for way in ways)
    sends.subtract(way[-1] for way in ways)
    from_start, from_end = _distances(spine[0], near), _distances(spine[-1], near)
    waiting = deque(spine)
    while waiting:
        parent = waiting.popleft()
        for node in near[parent]:
            if node in layer:
                continue
            if from_start[node] + from_end[node] == len(spine) - 1:
                layer[node] = from_start[node]
            else:
                outwards[node] = outwards.get(parent) or _side(sends[node], layer, layer[parent])
                layer[node] = layer[parent] + outwards[node]
            waiting.append(node)
    return {node: layer.get(node, 0) for node in nodes}


def _side(sends: int, layer: Mapping[str, int], parent: int) -> int:
    """-1: before the neighbour, for a sender; 1: behind it, for a receiver; for other nodes, the emptier layer."""
    if sends:
        return -1 if sends > 0 else 1
    taken = Counter(layer.values())
    return -1 if taken[parent - 1] < taken[parent + 1] else 1


def _long_way(start: str, near: Mapping[str, Sequence[str]]) -> list[str]:
    """A path between two distant nodes, for a network without traffic."""
    far = _farthest(start, near)
    distance = _distances(far, near)
    node = max(distance, key=lambda each: distance[each])
    way = [node]
    while node != far:
        node = next(each for each in near[node] if distance[each] == distance[node] - 1)
        way.append(node)
    return way


def _farthest(start: str, near: Mapping[str, Sequence[str]]) -> str:
    distance = _distances(start, near)
    return max(distance, key=lambda node: distance[node])


def _distances(start: str, near: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The number of hops to every node that can be reached."""
    distance = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in distance:
                distance[other] = distance[node] + 1
                waiting.append(other)
    return distance


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
