"""The types of scenarios for Python, from the JSON Schema that the crate `scenario` derives from its own types.

Each table becomes a `TypedDict`, each list of words a `Literal`, and descriptions become docstrings. A generator for
any schema, such as datamodel-code-generator, would bring a dozen packages for what is a short walk here, and has no
form for variants that share keys.
"""

import json
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bufferscope import _core

Node = Mapping[str, Any]

PATH = Path(__file__).parents[2] / "python" / "bufferscope" / "model" / "scenario.py"
WIDTH = 120
HEADER = '''\
"""The resolved scenario: a network with its traffic, every default filled in, every value in the unit of its name.

Made from the types of `crates/scenario` by `make reference`; edit those, not this. These are the types of the JSON that
the native core writes, which leaves out a `NotRequired` key that has its default; where its description says `None`,
that is the default. They check nothing at run time: of a scenario that comes with a run of unknown origin, only what
`store.metadata` checks is certain.
"""

from typing import Literal, NotRequired, TypedDict

'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
RUSTDOC_LINK = re.compile(r"\[(`[^`\]]+`)\](?:\([^)]*\))?")


def module() -> str:
    """The text of the module."""
    types = _Types(json.loads(_core.scenario_schema()))
    return _formatted(HEADER + "\n\n".join(types.statements()) + "\n")


class _Types:
    """Walks the schema; what a type refers to comes before it."""

    def __init__(self, schema: Node) -> None:
        self._definitions: dict[str, Node] = {**schema["$defs"], schema["title"]: schema}
        self._statements: list[str] = []
        self._begun: set[str] = set()
        self._complete: set[str] = set()

    def statements(self) -> list[str]:
        """The definitions of all types."""
        for name in self._definitions:
            if not self._is_variant(name):
                self._define(name)
        return self._statements

    def _is_variant(self, name: str) -> bool:
        """Whether a definition is only a part of a variant, which adds the tag."""
        return any(_referred(each) == name for node in self._definitions.values() for each in node.get("oneOf", ()))

    def _define(self, name: str) -> None:
        if name in self._begun:
            return
        self._begun.add(name)
        node = self._definitions[name]
        if variants := node.get("oneOf"):
            if any(_tag(variant) for variant in variants):
                self._define_tagged(name, node)
            elif all("properties" in variant for variant in variants):
                self._define_keyed(name, node)
            else:
                self._alias(name, self._expression(node, name), node)
        elif "properties" in node:
            self._class(name, "TypedDict", node, node.get("description", ""))
        else:
            self._alias(name, self._expression(node, name), node)
        self._complete.add(name)

    def _define_tagged(self, name: str, node: Node) -> None:
        """A class for each variant, by the value of its tag; the keys that all have are those of a common base."""
        base = "TypedDict"
        if "properties" in node:
            base = f"_{name}"
            self._class(base, "TypedDict", node, f"What every variant of `{name}` has.")
        classes = []
        for variant in node["oneOf"]:
            own = self._definitions.get(_referred(variant), {})
            tag = _tag(variant)
            merged = {
                "properties": {tag: variant["properties"][tag], **own.get("properties", {}), **variant["properties"]},
                "required": [*variant["required"], *own.get("required", ())],
            }
            title = _referred(variant) or _camel(variant["properties"][tag]["const"]) + name
            self._class(title, base, merged, own.get("description", variant.get("description", "")))
            classes.append(title)
        self._alias(name, " | ".join(classes), node)

    def _define_keyed(self, name: str, node: Node) -> None:
        """One class for variants that differ in their only key."""
        keys = {
            key: {"description": variant.get("description", ""), **value}
            for variant in node["oneOf"]
            for key, value in variant["properties"].items()
        }
        described = f"{node.get('description', '')} It has one of these keys."
        self._class(name, "TypedDict, total=False", {"properties": keys, "required": list(keys)}, described)

    def _class(self, name: str, bases: str, node: Node, description: str) -> None:
        keys = {key: self._annotation(name, key, node) for key in node["properties"]}
        if any(keyword.iskeyword(key) for key in keys):
            lines = "".join(
                f"{_comment(node['properties'][key])}        {json.dumps(key)}: {annotation},\n"
                for key, annotation in keys.items()
            )
            text = f'{name} = {bases}(\n    "{name}",\n    {{\n{lines}    }},\n)\n{_docstring(description, 0)}'
        else:
            fields = "".join(
                f"    {key}: {annotation}\n{_docstring(node['properties'][key].get('description', ''), 4)}"
                for key, annotation in keys.items()
            )
            text = f"class {name}({bases}):\n{_docstring(description, 4)}\n{fields}"
        self._statements.append(text)

    def _annotation(self, name: str, key: str, node: Node) -> str:
        expression = self._expression(node["properties"][key], name + _camel(key))
        names = re.findall(r"\w+", expression)
        if any(each in self._begun - self._complete for each in names):
            expression = f'"{expression}"'
        return expression if key in node.get("required", ()) else f"NotRequired[{expression}]"

    def _alias(self, name: str, expression: str, node: Node) -> None:
        self._statements.append(f"{name} = ({expression})\n{_docstring(node.get('description', ''), 0)}")

    def _expression(self, node: Node, name: str) -> str:
        """The type of a value; a table without a definition of its own becomes a class of the given name."""
        if referred := _referred(node):
            self._define(referred)
            return referred
        if alternatives := node.get("anyOf") or node.get("oneOf"):
            if words := [json.dumps(each["const"]) for each in alternatives if "const" in each]:
                assert len(words) == len(alternatives), f"{name} mixes words with other values"
                return f"Literal[{', '.join(words)}]"
            return " | ".join(self._expression(each, name) for each in alternatives)
        if "const" in node or "enum" in node:
            return f"Literal[{', '.join(json.dumps(each) for each in node.get('enum', [node.get('const')]))}]"
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return " | ".join(self._of_kind(kind, node, name) for kind in kinds)

    def _of_kind(self, kind: str, node: Node, name: str) -> str:
        if kind == "array":
            items = [node["items"]] if "items" in node else node["prefixItems"]
            return f"list[{' | '.join(dict.fromkeys(self._expression(each, name) for each in items))}]"
        if kind == "object":
            self._class(name, "TypedDict", node, node.get("description", ""))
            return name
        return SCALARS[kind]


def _referred(node: Node) -> str:
    """The name of the definition that a node refers to; empty if it refers to none."""
    return str(node.get("$ref", "")).rpartition("/")[2]


def _tag(variant: Node) -> str | None:
    """The key whose value distinguishes a variant from the others."""
    return next((key for key, value in variant.get("properties", {}).items() if "const" in value), None)


def _camel(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in name.split("_"))


def _words(description: str) -> Iterator[str]:
    """The paragraphs of a description, without the links of Rust's documentation."""
    for paragraph in re.split(r"\n\s*\n", RUSTDOC_LINK.sub(r"\1", description)):
        yield " ".join(paragraph.split())


def _docstring(description: str, indent: int) -> str:
    """A docstring, or nothing if there is no description."""
    if not description.strip():
        return ""
    assert "\\" not in description
    assert '"""' not in description
    width = WIDTH - indent
    first, *others = _words(description)
    text = f'"""{first}'
    if not others and len(text) + len('"""') <= width:
        lines = [text + '"""']
    else:
        lines = textwrap.wrap(text, width - len('"""') if len(text) <= width else width)
        for paragraph in others:
            lines += ["", *textwrap.wrap(paragraph, width)]
        lines.append('"""')
    return textwrap.indent("\n".join(lines) + "\n", " " * indent)


def _comment(node: Node) -> str:
    indent = " " * 8
    text = " ".join(_words(node.get("description", "")))
    return "".join(f"{indent}# {line}\n" for line in textwrap.wrap(text, WIDTH - len(indent) - 2))


def _formatted(text: str) -> str:
    """The text as `make fmt` leaves it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PATH), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
