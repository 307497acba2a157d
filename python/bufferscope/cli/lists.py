"""What `bufferscope list` can list besides experiments: the names that an experiment's file and options may use."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

from bufferscope import _core

Row = Mapping[str, object]


@dataclass(frozen=True)
class Listing:
    """A list of names, for a table and for JSON."""

    title: str
    headings: Mapping[str, str]
    """The keys of the rows that a table shows, with their headings."""
    rows: Callable[[], Sequence[Row]]


def controls() -> list[Row]:
    """The congestion controls of TCP."""
    return [{"name": each["const"], "about": _plain(each["description"])} for each in _variants("CongestionControl")]


def sources() -> list[Row]:
    """The kinds of `[[traffic]]` entries."""
    return [
        {"name": each["properties"]["kind"]["const"], "about": _plain(each["description"])}
        for each in _variants("Traffic")
    ]


def metrics() -> list[Row]:
    """Every metric or family of metrics."""
    from bufferscope.model.metric_definitions import definitions

    return [
        {"name": each.name, "unit": each.unit, "about": each.meaning, "source": each.source} for each in definitions()
    ]


def figures() -> list[Row]:
    """The figures that a file or `Result.figures` may name."""
    from bufferscope import figures as drawn

    return [
        {"name": name, "about": (getdoc(function) or "").partition("\n")[0], "tables": list(drawn.NEEDED[name])}
        for name, function in drawn.FIGURES.items()
    ]


def formats() -> list[Row]:
    """The formats that are read and written."""
    from bufferscope.interop.exporting import ABOUT
    from bufferscope.interop.importing.kinds import FORMATS

    imported = [{"name": each.name, "direction": "import", "about": each.about} for each in FORMATS.values()]
    captured = [{"name": "pcap, pcapng", "direction": "inspect", "about": "captures of tcpdump, Wireshark and others"}]
    exported = [{"name": name, "direction": "export", "about": about} for name, about in ABOUT.items()]
    return [*imported, *captured, *exported]


LISTINGS: Mapping[str, Listing] = {
    "controls": Listing("The congestion controls", {"name": "Name", "about": "What it is"}, controls),
    "traffic": Listing("The kinds of traffic", {"name": "Kind", "about": "What it sends"}, sources),
    "metrics": Listing("The metrics", {"name": "Name", "unit": "Unit", "about": "Meaning"}, metrics),
    "figures": Listing("The figures", {"name": "Name", "about": "What it shows"}, figures),
    "formats": Listing("The formats", {"name": "Name", "direction": "Command", "about": "What it is"}, formats),
}
"""By the names of the options."""


def _variants(definition: str) -> list[dict[str, Any]]:
    """The alternatives of a definition in the schema of experiment files."""
    variants: list[dict[str, Any]] = json.loads(_core.schema())["$defs"][definition]["oneOf"]
    return variants


def _plain(text: object) -> str:
    return " ".join(str(text).split())
