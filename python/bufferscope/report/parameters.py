"""An experiment's parameters as tables: the network and the traffic, with every default filled in.

Where points differ, a cell holds the setting of each point.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bufferscope.base.fmt import number, quantity, setting
from bufferscope.figures.source import PlottedPoint, shared_keys
from bufferscope.metrics.window import described, test_load
from bufferscope.model.network import NANOSECONDS, Encapsulation, Port, ports, traffic_ends
from bufferscope.model.recorded import recorded, unrecorded
from bufferscope.model.scenario import Scenario

Rows = Callable[[Scenario], Iterable[tuple[str, ...]]]
"""Makes a table's rows from a scenario; the first cell of a row is its name."""
Cell = tuple[tuple[str, str], ...]
"""The distinct settings of a cell, as pairs of the points' labels and the setting; the label is empty if all agree."""


@dataclass(frozen=True)
class Table:
    """Named columns and rows of cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def tables(points: Sequence[PlottedPoint]) -> list[Table]:
    """General settings, network and traffic of an experiment's points."""
    return [
        _merged("Run", ("Setting", "Value"), points, _general),
        _merged("Network", ("Port", "Rate", "Delay", "Queue", "Overhead"), points, _network(points)),
        _merged("Traffic", ("Name", "Kind", "From, to", "When", "Settings"), points, _traffic),
    ]


def _general(scenario: Scenario) -> Iterable[tuple[str, ...]]:
    yield "duration", quantity(scenario["duration_ns"], "ns")
    yield "warm-up, left out of the metrics", quantity(scenario["warmup_ns"], "ns")
    if test_load(scenario):
        yield "time that metrics measure", described(scenario)
    yield "time between samples", _intervals(scenario)
    if unrecorded(scenario):
        yield "recorded", ", ".join(recorded(scenario))
    for node in scenario["nodes"]:
        if not node["tcp"]:
            continue
        if node["tcp"] != scenario["nodes"][0]["tcp"] or node is scenario["nodes"][0]:
            yield f"TCP settings of {node['name']}", settings(node["tcp"])


def _intervals(scenario: Scenario) -> str:
    queues = quantity(scenario["sample_interval_ns"], "ns")
    own = scenario.get("flows_interval_ns")
    return queues if own is None else f"{queues} (queues), {quantity(own, 'ns')} (flows)"


def _network(points: Sequence[PlottedPoint]) -> Rows:
    """One row for each port; one for both directions of a link if they are the same at every point."""
    unlike = {
        forward.link
        for point in points
        for forward, reverse in _directions(point.first.scenario)
        if _port(forward) != _port(reverse)
    }

    def rows(scenario: Scenario) -> Iterable[tuple[str, ...]]:
        for forward, reverse in _directions(scenario):
            if forward.link in unlike:
                yield forward.name, *_port(forward)
                yield reverse.name, *_port(reverse)
            else:
                yield f"{forward.sender} ↔ {forward.receiver}", *_port(forward)

    return rows


def _directions(scenario: Scenario) -> list[tuple[Port, Port]]:
    """The two ports of each link."""
    found = list(ports(scenario).values())
    return list(zip(found[::2], found[1::2], strict=True))


def _port(port: Port) -> tuple[str, ...]:
    if port.is_unknown:
        return ("not known",) * 4
    delay = quantity(port.delay_ns, "ns") if port.delay_ns else "none"
    if port.faults:
        delay += f"; {settings({key: value for key, value in port.faults.items() if value})}"
    if not port.rate:
        return "not limited", delay, "none", "none"
    return _rate(port), delay, settings(port.queue, first="qdisc"), _overhead(port.link_layer)


def _overhead(link: Encapsulation) -> str:
    parts = [quantity(link.overhead_bytes, "bytes")]
    if link.mpu_bytes:
        parts.append(f"at least {quantity(link.mpu_bytes, 'bytes')}")
    if link.cells != "noatm":
        parts.append(f"in cells ({link.cells})")
    return ", ".join(parts)


def _rate(port: Port) -> str:
    if len(port.rate) == 1:
        rate = quantity(port.rate[0].bits_per_second, "bps")
        if port.variation:
            return f"{port.variation}, {rate} on average"
        if port.boost:
            return f"{quantity(port.boost.rate_bps, 'bps')} for {quantity(port.boost.bytes, 'bytes')}, then {rate}"
        return rate
    return ", ".join(
        f"{quantity(step.bits_per_second, 'bps')} from {number(step.from_ns / NANOSECONDS)} s" for step in port.rate
    )


def _traffic(scenario: Scenario) -> Iterable[tuple[str, ...]]:
    shown_elsewhere = {"name", "kind", "from", "to", "start_ns", "stop_ns"}
    for entry in scenario["traffic"]:
        sender, receiver = traffic_ends(scenario, entry)
        rest = {key: value for key, value in entry.items() if key not in shown_elsewhere}
        when = f"{number(entry['start_ns'] / NANOSECONDS)} s to {number(entry['stop_ns'] / NANOSECONDS)} s"
        yield entry["name"], entry["kind"], f"{sender} → {receiver}", when, settings(rest)


def settings(table: Mapping[str, object], first: str | None = None) -> str:
    """All keys of a table in words; the value of the key `first` comes first."""
    head = [str(table[first])] if first else []
    rest = {key: value for key, value in table.items() if key != first and value is not None}
    return ", ".join([*head, *(_told(key, value) for key, value in rest.items())])


def _told(key: str, value: object) -> str:
    """One setting in words; a table as the settings in it, and each table of a list in brackets."""
    if isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        return f"{key} " + " ".join(f"[{settings(each)}]" for each in value)
    return settings(value) if isinstance(value, Mapping) else setting(key, value)


def _merged(title: str, columns: tuple[str, ...], points: Sequence[PlottedPoint], rows: Rows) -> Table:
    """Merge the rows of all points by name; a row that only some points have shows the settings of those."""
    found: dict[str, list[tuple[PlottedPoint, tuple[str, ...]]]] = {}
    for point in points:
        for name, *cells in rows(point.first.scenario):
            found.setdefault(name, []).append((point, tuple(cells)))
    merged = [((("", name),), *_cells(variants, len(columns) - 1)) for name, variants in found.items()]
    return Table(title, columns, tuple(merged))


def _cells(variants: Sequence[tuple[PlottedPoint, tuple[str, ...]]], count: int) -> list[Cell]:
    return [_cell([(point, cells[index]) for point, cells in variants]) for index in range(count)]


def _cell(variants: Sequence[tuple[PlottedPoint, str]]) -> Cell:
    name = _shortest_name(variants)
    labels: dict[str, dict[str, None]] = {}
    for point, text in variants:
        labels.setdefault(text, {})[name(point)] = None
    if len(labels) == 1:
        return (("", next(iter(labels))),)
    return tuple((", ".join(named), text) for text, named in labels.items())


def _shortest_name(variants: Sequence[tuple[PlottedPoint, str]]) -> Callable[[PlottedPoint], str]:
    """How to name points: by the value of one swept key if it alone decides the text, otherwise by their labels.

    Only keys that every point sweeps can name them all: runs of one directory may have swept different keys.
    """
    for key in shared_keys([point for point, _ in variants]):
        decided: dict[str, set[str]] = {}
        for point, text in variants:
            decided.setdefault(point.first.point[key], set()).add(text)
        if all(len(texts) == 1 for texts in decided.values()):
            return partial(_value, key)
    return lambda point: point.label


def _value(key: str, point: PlottedPoint) -> str:
    return point.first.point[key]
