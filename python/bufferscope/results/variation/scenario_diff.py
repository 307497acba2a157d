"""Find differences between scenarios with equal settings: the experiment's file was edited between the runs."""

from collections.abc import Iterator, Mapping, Sequence

from bufferscope.model.directions import SIDES
from bufferscope.model.scenario import Scenario
from bufferscope.results.variation.settings import FILED, recording, unit_and_value

RECORDING = ("sample_interval_ns", "flows_interval_ns", "record")
"""A scenario's keys that say what is recorded, in another form than the file's."""
SAMPLED = ("sample.queues", "sample.flows")


def unlike(scenarios: Sequence[Scenario]) -> list[dict[str, str]]:
    """For each scenario, its values of the keys that differ among the scenarios; keys are as in the experiment file.

    A link, host or traffic entry that only some scenarios have counts as a single difference: `ping` and `no ping`.
    """
    if len(scenarios) < 2:
        return [{} for _ in scenarios]
    flat = [dict(_flat(scenario)) for scenario in scenarios]
    keys = dict.fromkeys(key for found in flat for key in found)
    differing = [key for key in keys if len({found.get(key) for found in flat}) > 1]
    columns: dict[str, list[str]] = {}
    for key in differing:
        entry = _entry(key)
        there = [any(_entry(other) == entry for other in found) for found in flat]
        if entry and not all(there):
            name = entry.partition(".")[2]
            columns[entry] = [name if found else f"no {name}" for found in there]
        else:
            columns[_path(key)] = [found.get(key, "none") for found in flat]
    columns = _joined(columns)
    # The stop time of traffic that lasts to the end of the run follows from the duration.
    ends = columns.get("duration")
    kept = {key: values for key, values in columns.items() if not (key.endswith(".stop") and values == ends)}
    return [{key: values[index] for key, values in kept.items()} for index in range(len(scenarios))]


def _flat(scenario: Scenario) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every leaf of a scenario with its path; list entries are called by their names, and so are nodes."""
    nodes = [node["name"] for node in scenario["nodes"]]
    for key, value in scenario.items():
        if key not in FILED.values() and key not in RECORDING:
            yield from _leaves(value, (key,))
    yield from ((tuple(key.split(".")), told) for key, told in recording(scenario).items())
    for name, list_key in FILED.items():
        for entry in scenario[list_key]:
            yield from _leaves(_with_names(entry, nodes), (name, entry["name"]))


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, unit_and_value(path[-1], value)


def _with_names(entry: Mapping[str, object], nodes: Sequence[str]) -> dict[str, object]:
    """An entry without its own name, and with the names of nodes in place of their numbers."""
    told = {key: value for key, value in entry.items() if key != "name"}
    for key in ("from", "to"):
        if isinstance(index := told.get(key), int):
            told[key] = nodes[index]
    if isinstance(ends := told.get("ends"), list):
        told["ends"] = "-".join(nodes[end] for end in ends)
    return told


def _entry(key: tuple[str, ...]) -> str:
    """The link, host or traffic entry that a key belongs to; empty for other keys."""
    return ".".join(key[:2]) if key[0] in FILED else ""


def _path(key: tuple[str, ...]) -> str:
    """A key's path as an experiment file writes it: without the unit."""
    *parents, last = key
    name = last
    for unit in ("_ns", "_bps", "_bytes", "_packets", "_percent"):
        name = name.removesuffix(unit)
    return ".".join([*parents, name])


def _joined(columns: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Merge a setting of both directions of a link into one of the link, if its values are the same.

    Likewise, both intervals between samples become `sample`.
    """
    found: dict[str, list[str]] = {}
    for path, values in columns.items():
        if path in SAMPLED and all(columns.get(each) == values for each in SAMPLED):
            path = "sample"
        parts = path.split(".")
        if parts[0] == "link" and len(parts) > 2 and parts[2] in SIDES:
            both = [".".join([*parts[:2], side, *parts[3:]]) for side in SIDES]
            if all(columns.get(side) == values for side in both):
                path = ".".join([*parts[:2], *parts[3:]])
        found[path] = values
    return found
