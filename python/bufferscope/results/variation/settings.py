"""The settings of a run, as written and as resolved, by the paths that experiment files and `--set` use."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from bufferscope.model.directions import SIDES
from bufferscope.model.recorded import recorded
from bufferscope.model.scenario import Scenario

if TYPE_CHECKING:
    from bufferscope.metrics.records import RunRecords

FILED: Mapping[str, Literal["nodes", "links", "traffic"]] = {"host": "nodes", "link": "links", "traffic": "traffic"}
"""The named tables of an experiment file, and the scenario's lists that they become."""
RECORDING = ("sample", "record")
"""Keys whose values a scenario holds in another form; see `recording`."""
UNITS = "(_ns|_bps|_bytes|_packets|_percent)?"
"""The unit at the end of a scenario's key; an experiment file has the unit after the number instead."""
SCALES = {
    "ns": ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")),
    "bps": ((10**9, "gbit"), (10**6, "mbit"), (10**3, "kbit"), (1, "bit")),
}
SUFFIXES = {"packets": "p", "bytes": "b"}


def short(run: "RunRecords", path: str, written: str | None) -> str | None:
    """A setting's value in a word or two; if the run does not set it, the value in its scenario, if there is one.

    A table is named by its qdisc, followed by its other settings: `codel limit=1000p` for
    `{qdisc="codel", limit="1000p"}`.
    """
    if written is None:
        found = list(_resolved(run.scenario, path.split(".")))
        return found[0] if found and len(set(found)) == 1 else None
    if written.startswith("{"):
        return _table(written)
    is_quoted = len(written) > 1 and written[0] == written[-1] and written[0] in "\"'"
    return written[1:-1] if is_quoted else written


def _table(written: str) -> str:
    try:
        table = tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written
    head = [str(table["qdisc"])] if "qdisc" in table else []
    return " ".join(head + [f"{key}={_plain(value)}" for key, value in table.items() if key != "qdisc"]) or written


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _resolved(scenario: Scenario, path: Sequence[str]) -> Iterator[str]:
    """The scenario's value at a path of the experiment file: one value, or one for each direction of a link."""
    if path[0] in RECORDING:
        own = ".".join(path)
        yield from (value for key, value in recording(scenario).items() if f"{key}.".startswith(f"{own}."))
        return
    if path[0] not in FILED:
        yield from _at(scenario, path)
        return
    if len(path) < 3:
        return
    entries: list[Mapping[str, object]] = [entry for entry in scenario[FILED[path[0]]] if entry["name"] == path[1]]
    for entry in entries:
        if path[0] != "link" or path[2] in SIDES:
            yield from _at(entry, path[2:])
        else:
            yield from (value for side in SIDES for value in _at(entry[side], path[2:]))


def recording(scenario: Scenario) -> dict[str, str]:
    """What is recorded and how often, by the paths of an experiment file: the interval of each sampled table, `record`.

    >>> recording({"sample_interval_ns": 10_000_000, "flows_interval_ns": 10**9, "record": ["flows"]})
    {'sample.queues': '10ms', 'sample.flows': '1s', 'record': '["flows"]'}
    """
    queues = scenario["sample_interval_ns"]
    intervals = {"sample.queues": queues, "sample.flows": scenario.get("flows_interval_ns", queues)}
    told = {path: unit_and_value("interval_ns", interval_ns) for path, interval_ns in intervals.items()}
    return {**told, "record": json.dumps(recorded(scenario))}


def _at(table: object, path: Sequence[str]) -> Iterator[str]:
    """The value at a path below a table, in a word or two; its key may end with a unit."""
    if not isinstance(table, Mapping):
        return
    name = re.compile(re.escape(path[0]) + UNITS)
    for key, value in table.items():
        if name.fullmatch(key):
            if path[1:]:
                yield from _at(value, path[1:])
            else:
                yield unit_and_value(key, value)


def unit_and_value(key: str, value: object) -> str:
    """A value of a scenario in a word or two; a number gets the unit of its key, as in an experiment file.

    >>> unit_and_value("delay_ns", 5_000_000), unit_and_value("limit_packets", 20), unit_and_value("ecn", False)
    ('5ms', '20p', 'false')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return _number(value, key.rpartition("_")[2])
    if isinstance(value, Mapping):
        return str(value.get("qdisc") or f"its own {key}")
    if isinstance(value, list) and key == "rate":
        return _schedule(value)
    return str(value)


def _number(value: int, unit: str) -> str:
    if unit in SCALES:
        return _scaled(value, SCALES[unit])
    return f"{value}{SUFFIXES.get(unit, '')}"


def _scaled(value: int, scales: Sequence[tuple[int, str]]) -> str:
    """The value in the largest unit that gives a whole number.

    >>> _scaled(1_500_000, SCALES["ns"])
    '1500us'
    """
    if value == 0:
        return "0"
    scale, unit = next((scale, unit) for scale, unit in scales if value % scale == 0)
    return f"{value // scale}{unit}"


def _schedule(steps: Sequence[Mapping[str, int]]) -> str:
    """A rate: one number if it does not change, otherwise each step with its start."""
    told = [(_scaled(step["from_ns"], SCALES["ns"]), _scaled(step["bits_per_second"], SCALES["bps"])) for step in steps]
    return told[0][1] if len(told) == 1 else " ".join(f"{rate}@{start}" for start, rate in told)
