"""The page on experiment files, from their JSON Schema."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bufferscope import _core
from writing import heading, table, toml

Node = Mapping[str, Any]

INTRODUCTION = """\
# Experiment files

An experiment is one TOML file. `bufferscope schema` prints the JSON Schema from which this page is generated; editors
use it to complete keys. Missing or unknown keys, values out of bounds and unknown names are errors. All errors are
reported together, one per line: the file, the key, what was found and what is allowed.

Any key can be overridden on the command line, `--set PATH=VALUE`, and swept in the file. In a path, links, hosts and
sources are identified by their names: `link.bottleneck.queue.limit`.

"""

UNITS = """\
A number with a unit is a string as in tc(8), in upper or lower case. As in tc, `kb` is 1024 bytes, but `kbit` is 1000
bits per second; `kbps` is 1000 *bytes* per second, and a run with it has a note and a warning.

"""


def page() -> str:
    """The whole page."""
    schema: Node = json.loads(_core.schema())
    sections = Sections(schema)
    body = sections.section(2, "Top level", schema) + "".join(sections.referred())
    return INTRODUCTION + _units(schema) + body.rstrip() + "\n"


def _units(schema: Node) -> str:
    """How numbers with units are written: one row per kind, with the units from the schema's own pattern."""
    rows: dict[str, tuple[str, str]] = {}
    for node in _nodes(schema):
        if quantity := node.get("x-quantity"):
            rows[quantity["of"]] = (quantity["of"], _units_of(node["pattern"]))
    return heading(2, "Units") + UNITS + table(["", "units"], rows.values())


def _units_of(pattern: str) -> str:
    """The units of a pattern that ends with all of them, such as `([mM][sS]|[sS])$`; with `?` the unit is optional."""
    found = re.fullmatch(r".*\((?P<units>.*)\)(?P<optional>\??)\$", pattern)
    assert found, f"this pattern does not end in units: {pattern}"
    units = ["".join(re.findall(r"\[(.)", unit)) for unit in found["units"].split("|")]
    return ", ".join(f"`{unit}`" for unit in units) + (", or none" if found["optional"] else "")


def _nodes(node: object) -> Iterator[Node]:
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from _nodes(child)
    elif isinstance(node, list):
        for child in node:
            yield from _nodes(child)


class Sections:
    """Walks the schema; each table that another one refers to becomes a section of its own."""

    def __init__(self, schema: Node) -> None:
        self.definitions: Mapping[str, Node] = schema["$defs"]
        self.titles: dict[str, list[str]] = {}
        """For each definition that gets a section, the keys that refer to it."""

    def referred(self, level: int = 2) -> Iterator[str]:
        """The sections of the definitions referred to so far, and of those to which they refer in turn."""
        done: set[str] = set()
        while waiting := [name for name in self.titles if name not in done]:
            name = waiting[0]
            done.add(name)
            title = self.titles[name][0]
            yield self.section(level, f"`{title}`", self.definitions[name], title.strip("[]"))

    def section(self, level: int, title: str, node: Node, path: str = "") -> str:
        """A heading, the description of the table, and its keys."""
        text = heading(level, title) + told(node) + "\n\n"
        if variants := node.get("oneOf"):
            return text + self._variants(level, variants, path)
        return text + self._keys(node["properties"], node.get("required", []), path)

    def _variants(self, level: int, variants: list[Node], path: str) -> str:
        """A table whose keys depend on one of them: first the common keys, then those that each variant adds."""
        every = [variant["properties"] for variant in variants]
        common = {key: node for key, node in every[0].items() if all(other.get(key) == node for other in every)}
        text = self._keys(common, variants[0]["required"], path) if common else ""
        for variant in variants:
            tag, name = next((key, node["const"]) for key, node in variant["properties"].items() if "const" in node)
            own = {key: node for key, node in variant["properties"].items() if key not in common and key != tag}
            text += heading(level + 1, f'`{path}` with `{tag} = "{name}"`') + told(variant) + "\n\n"
            text += self._keys(own, variant["required"], path)
        return text

    def _keys(self, properties: Node, required: list[str], path: str) -> str:
        def row(key: str, node: Node) -> list[str]:
            value = self.value(node, f"{path}.{key}".lstrip("."))
            return [f"`{key}`", value, default(key, node, required), self.meaning(node)]

        return table(["key", "value", "default", ""], (row(key, node) for key, node in properties.items()))

    def meaning(self, node: Node) -> str:
        """The purpose of the key. If its values may take several forms, also the purpose of each form."""
        more = node.get("additionalProperties") or {}
        values = more.get("$ref", "").rpartition("/")[2]
        forms = self.definitions[values].get("anyOf", []) if values else []
        return " ".join([told(node), *(form["description"] for form in forms)])

    def value(self, node: Node, path: str) -> str:
        """The allowed values, in a few words."""
        if quantity := node.get("x-quantity"):
            return f"{quantity['of']}, {quantity['from']} to {quantity['to']}"
        if "$ref" in node:
            return self._reference(node["$ref"].rpartition("/")[2], path)
        if "anyOf" in node:
            return ", or ".join(self.value(branch, path) for branch in node["anyOf"])
        if "oneOf" in node:
            return ", ".join(f"`{json.dumps(branch['const'])}`" for branch in node["oneOf"])
        return self._plain(node, path)

    def _reference(self, name: str, path: str) -> str:
        if not self._is_table(name):
            return self.value(self.definitions[name], path)
        self.titles.setdefault(name, []).append(path)
        return f"table, [below](#{self._anchor(name)})"

    def _anchor(self, name: str) -> str:
        """The anchor of a definition's heading, as MyST makes it: headings alike are numbered from the second on."""
        title = self.titles[name][0]
        alike = [other for other, (first, *_) in self.titles.items() if first == title]
        number = alike.index(name)
        return re.sub(r"[^a-z0-9_-]", "", title.lower()) + (f"-{number}" if number else "")

    def _is_table(self, name: str) -> bool:
        definition = self.definitions.get(name, {})
        return "properties" in definition or "properties" in definition.get("oneOf", [{}])[0]

    def _plain(self, node: Node, path: str) -> str:
        kind = node["type"]
        if kind == "array" and "items" in node:
            items = node["items"]
            if "$ref" in items:
                return "list of " + self.value(items, f"[[{path}]]").replace("table", "tables", 1)
            return f"list of {self.value(items, path)}"
        if kind == "array":
            items = node["prefixItems"]
            return "[" + ", ".join(item.get("x-quantity", {}).get("of", item["type"]) for item in items) + "]"
        if kind == "object":
            values = node.get("additionalProperties") or {}
            if values and self._is_table(values.get("$ref", "").rpartition("/")[2]):
                return "named " + self.value(values, f"{path}.NAME").replace("table", "tables", 1)
            return "table"
        if isinstance(kind, list):
            return "text, number or boolean"
        if "minimum" in node or "exclusiveMinimum" in node:
            above = "above " if "exclusiveMinimum" in node else ""
            lowest = node.get("minimum", node.get("exclusiveMinimum"))
            return f"{kind}, {above}{lowest:g} to {node['maximum']:,}"
        return {"string": "text"}.get(kind, str(kind))


def told(node: Node) -> str:
    """The key's description without the part that the column `value` has, and an example."""
    description = str(node.get("description", ""))
    if "x-quantity" in node:
        description = description.rpartition("\n\n")[0]
    examples = ", ".join(toml(example) for example in node.get("examples", []))
    return f"{description} For example {examples}." if examples and "x-quantity" not in node else description


def default(key: str, node: Node, required: list[str]) -> str:
    """The default of a key."""
    if "default" in node:
        return toml(node["default"])
    return "**required**" if key in required else ""
