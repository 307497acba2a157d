"""The keys that an experiment's file may set, by path, and values that suit them: what completion offers.

The file need not be right. Keys come from the JSON Schema, names and present values from the file.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bufferscope import _core

Node = Mapping[str, Any]
"""A node of the schema."""

LISTS = ("link", "host", "traffic")
"""The tables whose entries have names."""
NOT_SET = {"link", "host", "traffic", "sweep", "expect"}
"""Tables that no path names as a whole, or that only the file has."""


class Keys:
    """The key paths of one experiment, such as `link.bottleneck.queue.limit`, each with values that it may have."""

    def __init__(self, text: str) -> None:
        """Read a file's text; raises `ValueError` where it is no TOML."""
        self._tables = tomllib.loads(text)
        self._schema: Node = json.loads(_core.schema())
        self._values: dict[str, list[object]] = {}
        self._add_keys(self._schema, self._tables, "", NOT_SET)
        for name in LISTS:
            for entry in self._entries(name):
                self._add_keys(self._schema["properties"][name]["items"], entry, f"{name}.{entry['name']}", {"name"})

    def paths(self) -> list[str]:
        """Every path, those of the whole experiment first."""
        return list(self._values)

    def values(self, path: str) -> list[object]:
        """Values for a path, its present one first; empty for one that is none."""
        return self._values.get(path, [])

    def swept(self) -> dict[str, list[str]]:
        """The swept paths, each with the labels of its values."""
        return {path: _labels(values) for path, values in self._table(self._tables.get("sweep")).items()}

    def nodes(self) -> list[str]:
        """The names of the nodes, which are what the links join."""
        ends = (link.get("ends") for link in self._entries("link"))
        return list(dict.fromkeys(name for pair in ends if isinstance(pair, list) for name in pair))

    def _entries(self, name: str) -> list[dict[str, Any]]:
        """The entries of a list of tables that have names; every host has one."""
        listed = self._tables.get(name)
        entries = [entry for entry in listed if _is_named(entry)] if isinstance(listed, list) else []
        if name == "host":
            named = {entry["name"] for entry in entries}
            entries += [{"name": node} for node in self.nodes() if node not in named]
        return entries

    def _add_keys(self, node: Node, table: Mapping[str, Any], path: str, without: Iterable[str] = ()) -> None:
        for alternative in self._alternatives(node):
            properties: Mapping[str, Node] = alternative.get("properties", {})
            if any("const" in key and table.get(name) != key["const"] for name, key in properties.items()):
                continue
            for name, key in properties.items():
                if name not in without:
                    self._add_key(key, table.get(name), f"{path}.{name}" if path else name)

    def _add_key(self, node: Node, present: object, path: str) -> None:
        self._values[path] = list(_distinct([*_listed(present), *self._suitable(node, path)]))
        if isinstance(present, dict) or self._has_optional_keys(node):
            self._add_keys(node, self._table(present), path)

    def _has_optional_keys(self, node: Node) -> bool:
        """Whether some key of a table can be set by itself where the file has no such table."""
        return any("properties" in each and not each.get("required") for each in self._alternatives(node))

    def _suitable(self, node: Node, path: str) -> Iterator[object]:
        """What a key is by default, what it may be by name, and the schema's examples."""
        if path.endswith((".from", ".to")):
            yield from self.nodes()
            return
        if path.endswith((".qdisc", ".kind")):
            yield from self._words_beside(path)
        yield from _listed(node.get("default"))
        for each in self._alternatives(node):
            yield from _listed(each.get("const"))
            yield from each.get("enum", ())
            yield from (True, False) if each.get("type") == "boolean" else ()
            yield from _smallest_table(each)
        yield from node.get("examples", ())

    def _words_beside(self, path: str) -> Iterator[object]:
        """The words of the tag that tells which keys a table has."""
        definition = {"qdisc": "Queue", "kind": "Traffic"}[path.rpartition(".")[2]]
        tag = path.rpartition(".")[2]
        for variant in self._schema["$defs"][definition]["oneOf"]:
            yield variant["properties"][tag]["const"]

    def _alternatives(self, node: Node) -> Iterator[Node]:
        """The node without its references and choices: everything that may stand there."""
        if "$ref" in node:
            yield from self._alternatives(self._schema["$defs"][node["$ref"].rpartition("/")[2]])
            return
        choices = node.get("anyOf") or node.get("oneOf")
        if choices is None:
            yield node
        for choice in choices or ():
            yield from self._alternatives(choice)

    def _table(self, value: object) -> Mapping[str, Any]:
        return value if isinstance(value, dict) else {}


def _smallest_table(node: Node) -> Iterator[object]:
    """A table that its tag alone makes whole, as `{qdisc = "codel"}`."""
    tags = {name: key["const"] for name, key in node.get("properties", {}).items() if "const" in key}
    if tags and set(node.get("required", ())) == set(tags):
        yield tags


def _is_named(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


def _labels(values: object) -> list[str]:
    if isinstance(values, dict):
        return list(values)
    items: Sequence[object] = values if isinstance(values, list) else []
    return [str(item).lower() if isinstance(item, bool) else str(item) for item in items]


def _listed(value: object) -> Iterator[object]:
    if value is not None:
        yield value


def _distinct(values: Iterable[object]) -> Iterator[object]:
    seen = []
    for value in values:
        # 1 and true are equal to Python.
        if (type(value), value) not in seen:
            seen.append((type(value), value))
            yield value
