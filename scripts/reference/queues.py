"""The page on queueing disciplines, from their JSON Schema and the description beside the code of each."""

import json
import re
from collections.abc import Mapping
from typing import Any

from bufferscope import _core
from experiment_file import Sections, default, told
from writing import heading, table

INTRODUCTION = """\
# Queues: what is modelled, from which source

This page lists every queueing discipline of experiment files, with its parameters, their defaults, and its sources: the
file of the Linux kernel, and the RFCs and papers. Names and defaults are
those of `tc`. The simulator's models follow these sources and are compared with a real kernel
([agreement](../agreement.md)); the other engines use the kernel itself. [Which queue should I
use?](../which-queue.md) helps to choose.

"""


def page() -> str:
    """The whole page."""
    schema: Mapping[str, Any] = json.loads(_core.schema())
    variants = schema["$defs"]["Queue"]["oneOf"]
    names = [variant["properties"]["qdisc"]["const"] for variant in variants]
    rows = ((f"[`{name}`](#{name})", _core.QDISCS[name].purpose) for name in names)
    overview = table(["discipline", "purpose"], rows)
    return INTRODUCTION + overview + "".join(_section(schema, variant) for variant in variants).rstrip() + "\n"


class _QueueSections(Sections):
    """The tables of one discipline; an inner discipline can be any of this page."""

    def _reference(self, name: str, path: str) -> str:
        if name == "Queue":
            return "table, a discipline of this page"
        return super()._reference(name, path)


def _section(schema: Mapping[str, Any], variant: Mapping[str, Any]) -> str:
    sections = _QueueSections(schema)
    name = variant["properties"]["qdisc"]["const"]
    text = heading(2, name) + f"{told(variant)}\n\nSource: {_source(_core.QDISCS[name].source)}.\n\n"
    own = {key: node for key, node in variant["properties"].items() if key != "qdisc"}
    if not own:
        return text + "No parameters.\n\n"
    rows = (
        (
            f"`{key}`",
            default(key, node, variant["required"]),
            sections.value(node, f"{name}.{key}"),
            sections.meaning(node),
        )
        for key, node in own.items()
    )
    return text + table(["parameter", "default", "range", "meaning"], rows) + "".join(sections.referred(level=3))


def _source(text: str) -> str:
    """The kernel's files as code, and RFCs as links."""
    text = re.sub(r"\b(?:net|include)/[\w./]+\w", lambda found: f"`{found[0]}`", text)
    return re.sub(r"RFC (\d+)", r"[RFC \1](https://www.rfc-editor.org/rfc/rfc\1)", text)
