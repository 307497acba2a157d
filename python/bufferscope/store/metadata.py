"""What `run.json` must look like: everything that metrics, figures, pages and commands rely on.

A run may come from anywhere. Names may have only certain characters, because files, links and anchors are named after
them. The scenario's indices and lists are checked against each other.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NotRequired, TypedDict, cast

from bufferscope import _core
from bufferscope.model.expectations import ExpectationEntry
from bufferscope.model.experiment import DrawnMember, PopulationWords, SweepAxis
from bufferscope.model.figure_names import NAMES as FIGURES
from bufferscope.model.figure_names import FigureName
from bufferscope.model.scenario import ENDS, SIDES, FifoQueueing, Mac80211Queueing, RateStep, Scenario, Traffic
from bufferscope.store import FORMAT
from bufferscope.store.live import LIVE, LiveMeasurement
from bufferscope.store.schema import (
    Mismatch,
    SchemaCheck,
    flag,
    items,
    mapping,
    matching,
    number,
    optional,
    plain,
    shaped,
    table,
    text,
    whole,
)


class FileWords(TypedDict, total=False):
    """An experiment file's words besides the set-up; the swept keys are without their values."""

    title: str | None
    source: str | None
    document: str | None
    description: str | None
    figures: list[FigureName] | None
    notes: str | None
    repeat: int
    sweep: Mapping[str, SweepAxis | list[str]]
    expect: str
    """A digest of all expectations."""
    population: PopulationWords


class ExperimentMetadata(TypedDict):
    """The part of `run.json` about the experiment's file: nothing in it influences the records."""

    title: str
    path: str
    overrides: list[str]
    position: int
    document: FileWords
    expectations: list[ExpectationEntry]


class Member(DrawnMember):
    """What was drawn for a member of a population, and from which set-up."""

    of: str
    """A digest of the point's scenario before anything was drawn: it is the same for all members."""


class MemberFacts(TypedDict, total=False):
    """The part of `run.json` that only members of a population have."""

    member: Member


class InitialMetadata(ExperimentMetadata, MemberFacts):
    """The part of `run.json` that is known before the run."""

    format: int
    bufferscope: str
    commit: str
    """The commit of bufferscope that made the run; empty if it is not known."""
    experiment: str
    engine: str
    engine_identity: str
    """Empty if the engine's runs are never the same."""
    seed: int
    point: dict[str, str]
    scenario: Scenario


class Sampling(TypedDict):
    """The time between two samples."""

    asked_ns: int
    achieved_ns: int


class GuestFacts(TypedDict):
    """What the engine guest says of its virtual machine."""

    release: str
    image: str
    qemu: str
    cpu_s: float


class CpuReport(TypedDict):
    """How busy the processors were during a run on a kernel."""

    busiest: float
    most: float
    saturated_s: float


class Change(TypedDict):
    """A change that was made during a run."""

    t_ns: int
    set: list[str]
    """`PATH=VALUE`, as given."""


class SourceFile(TypedDict):
    """A file that a run was read from."""

    file: str
    bytes: int
    sha256: str


class Origin(TypedDict):
    """Where a run comes from that another program observed."""

    tool: str
    version: str
    """Empty if it is not known."""
    sources: list[SourceFile]
    clock: bool
    """Whether `started` is the time of the observation; otherwise it is that of the import."""
    reported: dict[str, float | str]
    """The program's own results that cannot be computed from the tables."""
    connections: NotRequired[dict[str, str]]
    """Names of the captured connections with the most data, by their flows."""


class CaptureFacts(TypedDict):
    """What a kernel captured of its packets."""

    packets: int
    """Counted at each end of each link."""
    missed: int
    """Packets that are missing, because there was no room for them."""
    snap_bytes: int
    """How much of a packet is stored at most."""


class Summary(TypedDict, total=False):
    """An engine's own counters; only the keys that others read are named here."""

    hops: int
    """Packets fully sent on a link, one for every link that they took."""
    kernel: str
    """The release of the kernel that carried the packets."""
    changes: list[Change]
    """The changes made during the run, in order; missing if there were none. The scenario is then that at the end."""
    not_measured: list[str]
    """The tables that stay empty because the engine can't know their content."""
    observed: Origin
    """Where the run comes from, if another program observed it."""
    live: LiveMeasurement
    """How a live measurement went, and its verdict."""
    privilege: str
    """The privilege with which the network was built."""
    cpu: CpuReport
    guest: GuestFacts
    capture: CaptureFacts
    """If the packets were captured."""


class Observed(TypedDict):
    """The part of `run.json` that is known after the run."""

    engine_version: str
    started: str
    wall_s: float
    cpu_s: float
    sampling: Sampling
    mss_bytes: int
    machine: dict[str, str | int]
    warnings: list[str]
    tables: Mapping[str, int]
    summary: Summary


class TableFile(TypedDict):
    """The file of a table as it was written."""

    bytes: int
    sha256: str


class Metadata(InitialMetadata, Observed):
    """The content of a `run.json`, with every optional key filled in."""

    files: dict[str, TableFile]


_FILE_NAME = matching(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", "a name of letters, digits, '.', '_' and '-'")
"""The name of an experiment or an engine: files and directories are named after them."""
_NAME = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", "a name of letters, digits, '.', '_' and '-'")
"""The name of a node, a link or a traffic entry."""
_TABLE = matching("|".join(_core.TABLES), f"one of {', '.join(_core.TABLES)}")
_FIGURE = matching("|".join(FIGURES), f"one of {', '.join(FIGURES)}")


@shaped({"type": "string", "format": "date-time"})
def _time(value: object, where: str) -> None:
    try:
        is_time = datetime.fromisoformat(str(value)).year > 1 and isinstance(value, str)
    except ValueError:
        is_time = False
    if not is_time:
        raise Mismatch(where, value, "a time, as in 2026-01-31T12:00:00+00:00")


_BYTE_LIMITS = table({"hold_ns": whole(), "min_bytes": whole(), "max_bytes": whole()})
_RING = table({"size_packets": whole(1)}, {"bql": optional(_BYTE_LIMITS)})
_BOOST = table({"rate_bps": whole(1), "bytes": whole(1)})
_OUTAGES = table({"every_ns": whole(1), "lasts_ns": whole(1)})
_WALK = table(
    {
        "mean_bps": whole(1),
        "deviation_bps": whole(1),
        "coherence_ns": whole(1),
        "every_ns": whole(1),
        "max_bps": whole(1),
    },
    {"preset": optional(text), "outages": optional(_OUTAGES)},
)
_TRACE = table({"file": text, "opportunities": text})
_VARIATION = table({}, {"trace": optional(_TRACE), "walk": optional(_WALK)})
_PORT = table(
    {
        "rate": optional(items(table({"from_ns": whole(), "bits_per_second": whole(1)}), least=1)),
        "delay_ns": whole(),
        "overhead_bytes": whole(),
        "queue": table({"qdisc": text}, {"limit_packets": optional(whole())}),
    },
    {
        "mpu_bytes": optional(whole()),
        "cells": optional(text),
        "ring": optional(_RING),
        "boost": optional(_BOOST),
        "variation": optional(_VARIATION),
        "faults": optional(plain),
    },
)
_LINK = table({"name": _NAME, "ends": items(whole(), 2, 2), "forward": _PORT, "reverse": _PORT})
_QUEUEING_BY_KIND: Mapping[str, SchemaCheck] = {
    "fifo": table({"size_packets": whole()}),
    "mac80211": table({"airtime_fairness": flag}),
}


_QUEUEING = table({"kind": matching("|".join(_QUEUEING_BY_KIND), f"one of {', '.join(_QUEUEING_BY_KIND)}")})


def _check_queueing(value: object, where: str) -> None:
    _QUEUEING(value, where)
    _QUEUEING_BY_KIND[cast(FifoQueueing | Mac80211Queueing, value)["kind"]](value, where)


_KINDS = [
    {"properties": {"kind": {"const": kind}}, "required": ["kind"], "allOf": [check.schema]}
    for kind, check in _QUEUEING_BY_KIND.items()
]
_queueing = SchemaCheck(_check_queueing, {"oneOf": _KINDS})
_STATION = table({"link": whole()})
_WIFI = table({"name": _NAME, "access_point": whole(), "stations": items(_STATION, least=1), "queueing": _queueing})
_NEEDED_BY_KIND: Mapping[str, SchemaCheck] = {
    "tcp": table({"flows": whole()}),
    "udp": table({"payload_bytes": whole(1)}),
    "ping": table({"payload_bytes": whole()}),
    "irtt": table({"payload_bytes": whole()}),
    "netalyzr": table({"payload_bytes": whole(1)}),
}
"""What the metrics and findings of each kind of traffic need."""
_ENTRY = table(
    {"name": _NAME, "kind": text, "from": whole(), "to": whole(), "start_ns": whole(), "stop_ns": whole()},
    {"transfers": optional(whole())},
)


def _check_traffic(value: object, where: str) -> None:
    _ENTRY(value, where)
    if needed := _NEEDED_BY_KIND.get(cast(Traffic, value)["kind"]):
        needed(value, where)


_IF_KIND = [
    {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": needed.schema}
    for kind, needed in _NEEDED_BY_KIND.items()
]
_TRAFFIC = SchemaCheck(_check_traffic, {**_ENTRY.schema, "allOf": _IF_KIND})
_SCENARIO = table(
    {
        "duration_ns": whole(1),
        "warmup_ns": whole(),
        "sample_interval_ns": whole(1),
        "nodes": items(table({"name": _NAME, "tcp": table({})}), least=1),
        "links": items(_LINK),
        "traffic": items(_TRAFFIC),
    },
    {"flows_interval_ns": whole(1), "record": items(_TABLE), "wifi": items(_WIFI)},
)
_MEASURED: Mapping[str, SchemaCheck] = {"point": whole(), "relative_to": optional(whole())}
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
    {
        "number": whole(1),
        "figure": optional(text),
        "shown_by": optional(mapping(text)),
        "group": text,
        "share_in": items(optional(number), 2, 2),
    },
)


_ALL, _DIGEST = items(text), table({"values": whole(), "digest": text})


@shaped({"anyOf": [_ALL.schema, _DIGEST.schema]})
def _axis(value: object, where: str) -> None:
    """Check what `run.json` says of a swept key's values: all of them, or their number and a digest."""
    (_ALL if isinstance(value, list) else _DIGEST)(value, where)


_DOCUMENT = table(
    {},
    {
        **{key: optional(text) for key in ("title", "source", "document", "description", "notes")},
        "figures": optional(items(_FIGURE)),
        "repeat": whole(),
        "sweep": mapping(_axis),
    },
)
_MEMBER = table({"group": _NAME, "values": mapping(text), "of": text})
_CHANGE = table({"t_ns": whole(), "set": items(text)})
_SHA256 = matching("[0-9a-f]{64}", "64 hexadecimal digits")
_SOURCE = table({"file": text, "bytes": whole(), "sha256": _SHA256})


@shaped({"anyOf": [number.schema, text.schema]})
def _number_or_text(value: object, where: str) -> None:
    """Check a result of another program."""
    (text if isinstance(value, str) else number)(value, where)


_ORIGIN = table(
    {"tool": text, "version": text, "sources": items(_SOURCE), "clock": flag, "reported": mapping(_number_or_text)},
    {"connections": mapping(text)},
)
FILE = table({"bytes": whole(), "sha256": _SHA256})

_REQUIRED: Mapping[str, SchemaCheck] = {
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
    "summary": table(
        {},
        {
            "not_measured": items(_TABLE),
            "kernel": text,
            "changes": items(_CHANGE),
            "observed": _ORIGIN,
            "live": LIVE,
        },
    ),
    "warnings": items(text),
    "tables": mapping(whole(), _TABLE),
}
"""The keys that `run.json` must have; other keys are allowed."""

_OPTIONAL: Mapping[str, tuple[type, SchemaCheck]] = {
    "commit": (str, text),
    "path": (str, text),
    "document": (dict, _DOCUMENT),
    "expectations": (list, items(_EXPECTATION)),
    "overrides": (list, items(text)),
    "position": (int, whole()),
    "engine_identity": (str, text),
    "files": (dict, mapping(FILE, _TABLE)),
}
"""The keys that may be missing, with their types. A missing key gets an empty value of its type. Records that
bufferscope did not write come without an experiment file, and some engines have no identity."""

_RUN = table(_REQUIRED, {"member": _MEMBER, **{key: check for key, (_, check) in _OPTIONAL.items()}})


def sources(metadata: Metadata) -> Sequence[SourceFile]:
    """The files that the run was read from, if another program observed it; none if an engine carried its packets."""
    observed = metadata["summary"].get("observed")
    return observed["sources"] if observed else ()


def checked(found: Mapping[str, object]) -> Metadata:
    """The content of a `run.json`, with every optional key filled in; raises `Mismatch` for a wrong value."""
    completed = {key: kind() for key, (kind, _) in _OPTIONAL.items()} | dict(found)
    plain(completed, "")
    _RUN(completed, "")
    metadata = cast(Metadata, completed)
    _check_network(metadata["scenario"])
    return metadata


def schema() -> dict[str, object]:
    """The JSON Schema of `run.json`, made from the checks above."""
    runs = dict(_RUN.schema)
    properties = {"format": {"const": FORMAT}, **cast(dict[str, object], runs["properties"])}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "run.json of bufferscope",
        "description": f"How a run was made, and which tables it has. Format {FORMAT}.",
        **runs,
        "properties": properties,
        "required": ["format", *cast(list[str], runs["required"])],
    }


def _check_network(scenario: Scenario) -> None:
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
        for side in SIDES:
            _check_rate(link[side]["rate"] or (), f"{where}.{side}.rate")
        one, other = (reached[end] for end in link["ends"])
        reached = [one if each == other else each for each in reached]
    for index, network in enumerate(scenario.get("wifi", [])):
        for member, station in enumerate(network["stations"]):
            whole(0, len(scenario["links"]) - 1)(station["link"], f"scenario.wifi[{index}].stations[{member}].link")
    for index, entry in enumerate(scenario["traffic"]):
        where = f"scenario.traffic[{index}]"
        for key in ENDS:
            node(entry[key], f"{where}.{key}")
        if reached[entry["from"]] != reached[entry["to"]]:
            raise Mismatch(f"{where}.to", entry["to"], "a node that a path leads to")


def _check_different(where: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise Mismatch(where, names, "different names")


def _check_rate(steps: Sequence[RateStep], where: str) -> None:
    times = [step["from_ns"] for step in steps]
    if times and (times[0] != 0 or any(later <= earlier for earlier, later in pairwise(times))):
        raise Mismatch(where, times, "steps from 0 on, in the order of time")
