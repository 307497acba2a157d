"""What `run.json` must look like: everything that metrics, figures, pages and commands rely on.

A run may come from anywhere. Names may have only certain characters, because files, links and anchors are named after
them. The scenario's indices and lists are checked against each other.
"""

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from bufferscope import _core
from bufferscope.figures import NAMES as FIGURES
from bufferscope.store.shape import (
    Check,
    Mismatch,
    Missing,
    items,
    mapping,
    matching,
    number,
    optional,
    plain,
    table,
    text,
    whole,
)

_FILE_NAME = matching(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", "a name of letters, digits, '.', '_' and '-'")
"""The name of an experiment or an engine: files and directories are named after them."""
_NAME = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", "a name of letters, digits, '.', '_' and '-'")
"""The name of a node, a link or a traffic entry."""
_TABLE = matching("|".join(_core.TABLES), f"one of {', '.join(_core.TABLES)}")
_FIGURE = matching("|".join(FIGURES), f"one of {', '.join(FIGURES)}")


def _time(value: object, where: str) -> None:
    try:
        is_time = datetime.fromisoformat(str(value)).year > 1 and isinstance(value, str)
    except ValueError:
        is_time = False
    if not is_time:
        raise Mismatch(where, value, "a time, as in 2026-01-31T12:00:00+00:00")


_PORT = table(
    {
        "rate": optional(items(table({"from_ns": whole(), "bits_per_second": whole(1)}), least=1)),
        "delay_ns": whole(),
        "overhead_bytes": whole(),
        "queue": table({"qdisc": text}, {"limit_packets": optional(whole())}),
    },
    {"ring": optional(table({}))},
)
_LINK = table({"name": _NAME, "ends": items(whole(), 2, 2), "forward": _PORT, "reverse": _PORT})
_TRAFFIC = table(
    {"name": _NAME, "kind": text, "from": whole(), "to": whole(), "start_ns": whole(), "stop_ns": whole()},
    {"flows": whole(), "payload_bytes": whole(1), "transfers": optional(whole())},
)
_NEEDED_BY_KIND: Mapping[str, str] = {"tcp": "flows", "udp": "payload_bytes"}
"""The key that the metrics of each kind of traffic need."""
_SCENARIO = table(
    {
        "duration_ns": whole(1),
        "warmup_ns": whole(),
        "sample_interval_ns": whole(1),
        "nodes": items(table({"name": _NAME, "tcp": table({})}), least=1),
        "links": items(_LINK),
        "traffic": items(_TRAFFIC),
    },
    {"flows_interval_ns": whole(1), "record": items(_TABLE)},
)
_MEASURED: Mapping[str, Check] = {"point": whole(), "relative_to": optional(whole())}
_EXPECTATION = table(
    {
        "metric": text,
        "says": text,
        "band": items(optional(number), 2, 2),
        "differs": optional(text),
        "where": mapping(text),
        "relative_to": optional(mapping(text)),
        "comparisons": items(table(_MEASURED, {"shown_by": optional(table(_MEASURED))})),
        "not_applicable": optional(text),
    },
    {"number": whole(1), "shown_by": optional(mapping(text))},
)


def _axis(value: object, where: str) -> None:
    """Check what `run.json` says of a swept key's values: all of them, or their number and a digest."""
    (items(text) if isinstance(value, list) else table({"values": whole(), "digest": text}))(value, where)


_DOCUMENT = table(
    {},
    {
        **{key: optional(text) for key in ("title", "source", "description", "notes")},
        "figures": optional(items(_FIGURE)),
        "sweep": mapping(_axis),
    },
)
_FILE = table({"bytes": whole(), "sha256": matching("[0-9a-f]{64}", "64 hexadecimal digits")})

_REQUIRED: Mapping[str, Check] = {
    "bufferscope": text,
    "experiment": _FILE_NAME,
    "title": text,
    "engine": _FILE_NAME,
    "engine_version": text,
    "seed": whole(),
    "point": mapping(text),
    "scenario": _SCENARIO,
    "started": _time,
    "wall_s": number,
    "cpu_s": number,
    "sampling": table({"asked_ns": whole(), "achieved_ns": whole()}),
    "mss_bytes": whole(1),
    "machine": mapping(plain),
    "summary": table({}, {"not_measured": items(_TABLE), "kernel": text}),
    "warnings": items(text),
    "tables": mapping(whole(), _TABLE),
}
"""The keys that `run.json` must have; other keys are allowed."""

_OPTIONAL: Mapping[str, tuple[type, Check]] = {
    "path": (str, text),
    "document": (dict, _DOCUMENT),
    "expectations": (list, items(_EXPECTATION)),
    "overrides": (list, items(text)),
    "position": (int, whole()),
    "engine_identity": (str, text),
    "files": (dict, mapping(_FILE, _TABLE)),
}
"""The keys that may be missing, with their types. A missing key gets an empty value of its type. Records that
bufferscope did not write come without an experiment file, and some engines have no identity."""

_RUN = table(_REQUIRED, {key: check for key, (_, check) in _OPTIONAL.items()})


def checked(found: dict[str, Any]) -> dict[str, Any]:
    """The content of a `run.json`, with every optional key filled in; raises `Mismatch` for a wrong value."""
    metadata = {key: kind() for key, (kind, _) in _OPTIONAL.items()} | found
    plain(metadata, "")
    _RUN(metadata, "")
    _check_network(metadata["scenario"])
    return metadata


def _check_network(scenario: Mapping[str, Any]) -> None:
    """Check that names are unique, indices refer to nodes, rates start at 0 in order of time, and paths exist."""
    names = [node["name"] for node in scenario["nodes"]]
    _check_different("scenario.nodes", names)
    _check_different("scenario.traffic", [entry["name"] for entry in scenario["traffic"]])
    node = whole(0, len(names) - 1)
    reached = list(range(len(names)))
    """For every node, the node that represents all nodes connected with it."""
    for index, link in enumerate(scenario["links"]):
        where = f"scenario.links[{index}]"
        for end in link["ends"]:
            node(end, f"{where}.ends")
        for side in ("forward", "reverse"):
            _check_rate(link[side]["rate"] or (), f"{where}.{side}.rate")
        one, other = (reached[end] for end in link["ends"])
        reached = [one if place == other else place for place in reached]
    for index, entry in enumerate(scenario["traffic"]):
        where = f"scenario.traffic[{index}]"
        if (needed := _NEEDED_BY_KIND.get(entry["kind"])) and needed not in entry:
            raise Missing(f"{where}.{needed}")
        for end in ("from", "to"):
            node(entry[end], f"{where}.{end}")
        if reached[entry["from"]] != reached[entry["to"]]:
            raise Mismatch(f"{where}.to", entry["to"], "a node that a path leads to")


def _check_different(where: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise Mismatch(where, names, "different names")


def _check_rate(steps: Any, where: str) -> None:
    times = [step["from_ns"] for step in steps]
    if times and (times[0] != 0 or any(later <= earlier for earlier, later in pairwise(times))):
        raise Mismatch(where, times, "steps from 0 on, in the order of time")
