"""The keys that an experiment's file may set, by path, and suitable values for them, which completion offers.

The file may have errors. Keys come from the JSON Schema; names and present values come from the file.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict

from bufferscope import _core

Node = TypedDict(
    "Node",
    {
        "$ref": str,
        "$defs": dict[str, "Node"],
        "anyOf": list["Node"],
        "oneOf": list["Node"],
        "type": str | list[str],
        "properties": dict[str, "Node"],
        "items": "Node",
        "required": list[str],
        "const": object,
        "enum": list[object],
        "default": object,
        "examples": list[object],
    },
    total=False,
)
"""A node of the schema: the keywords that are read."""

LISTS = ("link", "wifi", "host", "traffic")
"""The tables whose entries have names."""
NOT_SET = {"link", "wifi", "host", "traffic", "sweep", "expect"}
"""Tables that no path names as a whole, or that only the file can contain."""


class Keys:
    """The key paths of one experiment, such as `link.bottleneck.queue.limit`, each with values that it may have."""

    def __init__(self, text: str) -> None:
        """Read a file's text; raises `ValueError` if it is not TOML."""
        self._tables = tomllib.loads(text)
        self._schema: Node = json.loads(_core.schema())
        self._values: dict[str, list[object]] = {}
        self._add_keys(self._schema, self._tables, "", NOT_SET)
        for name in LISTS:
            for entry in self._entries(name):
                self._add_keys(self._schema["properties"][name]["items"], entry, f"{name}.{entry['name']}", {"name"})

    def paths(self) -> list[str]:
        """Every path; those of the experiment itself come before those of its links, hosts and traffic."""
        return list(self._values)

    def values(self, path: str) -> list[object]:
        """Values for a path, the present value first; empty for an unknown path."""
        return self._values.get(path, [])

    def swept(self) -> dict[str, list[str]]:
        """The swept paths, each with the labels of its values."""
        return {path: _labels(values) for path, values in self._table(self._tables.get("sweep")).items()}

    def nodes(self) -> list[str]:
        """The names of the nodes, from the ends of the links."""
        ends = (link.get("ends") for link in self._entries("link"))
        return list(dict.fromkeys(name for pair in ends if isinstance(pair, list) for name in pair))

    def _entries(self, name: str) -> list[dict[str, object]]:
        """The named entries of a list of tables; every node has an entry among the hosts."""
        listed = self._tables.get(name)
        entries = [entry for entry in listed if _is_named(entry)] if isinstance(listed, list) else []
        if name == "host":
            named = {entry["name"] for entry in entries}
            entries += [{"name": node} for node in self.nodes() if node not in named]
        return entries

    def _add_keys(self, node: Node, table: Mapping[str, object], path: str, without: Iterable[str] = ()) -> None:
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
        """Whether a key of a table can be set by itself although the file has no such table."""
        return any("properties" in each and not each.get("required") for each in self._alternatives(node))

    def _suitable(self, node: Node, path: str) -> Iterator[object]:
        """A key's default, the values that the schema names, and the schema's examples."""
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
        """The possible values of the tag (`qdisc`, `kind`) that decides which keys its table has."""
        definition = {"qdisc": "Queue", "kind": "Traffic"}[path.rpartition(".")[2]]
        tag = path.rpartition(".")[2]
        for variant in self._schema["$defs"][definition]["oneOf"]:
            yield variant["properties"][tag]["const"]

    def _alternatives(self, node: Node) -> Iterator[Node]:
        """All alternatives for a node, with references and choices resolved."""
        if "$ref" in node:
            yield from self._alternatives(self._schema["$defs"][node["$ref"].rpartition("/")[2]])
            return
        choices = node.get("anyOf") or node.get("oneOf")
        if choices is None:
            yield node
        for choice in choices or ():
            yield from self._alternatives(choice)

    def _table(self, value: object) -> Mapping[str, object]:
        return value if isinstance(value, dict) else {}


def _smallest_table(node: Node) -> Iterator[object]:
    """A table that is complete with its tag alone, such as `{qdisc = "codel"}`."""
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
        # In Python, 1 equals True.
        if (type(value), value) not in seen:
            seen.append((type(value), value))
            yield value
