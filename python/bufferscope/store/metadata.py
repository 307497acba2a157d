"""What `run.json` must look like: everything that metrics, figures, pages and commands rely on.

A run may come from anywhere. Names may have only certain characters, because files, links and anchors are named after
them. The scenario's indices and lists are checked against each other.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, NotRequired, TypedDict, cast

from msgspec import Meta

from bufferscope.base.bounded import Positive, Whole, matching
from bufferscope.model.directions import ENDS, SIDES
from bufferscope.model.expectations import ExpectationEntry
from bufferscope.model.experiment import DrawnMember, PopulationWords, SweepAxis
from bufferscope.model.figure_names import FigureName
from bufferscope.model.scenario import RateStep, Scenario
from bufferscope.store import FORMAT
from bufferscope.store.live import LIVE, LiveMeasurement
from bufferscope.store.required import QUEUEING, TRAFFIC, RequiredScenario, TableKey
from bufferscope.store.schema import Check, Mismatch, Unchecked, plain

FileName = Annotated[str, matching(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", "a name of letters, digits, '.', '_' and '-'")]
"""The name of an experiment or an engine: files and directories are named after them."""
Sha256 = Annotated[str, matching("[0-9a-f]{64}", "64 hexadecimal digits")]


class FileWords(TypedDict, total=False):
    """An experiment file's words besides the set-up; the swept keys are without their values."""

    title: str | None
    source: str | None
    document: str | None
    description: str | None
    figures: list[FigureName] | None
    notes: str | None
    repeat: Whole
    sweep: Mapping[str, SweepAxis | list[str]]
    expect: Unchecked[str]
    """A digest of all expectations."""
    population: Unchecked[PopulationWords]


class ExperimentMetadata(TypedDict):
    """The part of `run.json` about the experiment's file: nothing in it influences the records."""

    title: str
    path: str
    overrides: list[str]
    position: Whole
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

    format: Whole
    bufferscope: str
    commit: str
    """The commit of bufferscope that made the run; empty if it is not known."""
    experiment: FileName
    engine: FileName
    engine_identity: str
    """Empty if the engine's runs are never the same."""
    seed: Whole
    point: dict[str, str]
    scenario: Annotated[Scenario, Check(RequiredScenario)]


class Sampling(TypedDict):
    """The time between two samples."""

    asked_ns: Whole
    achieved_ns: Whole


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

    t_ns: Whole
    set: list[str]
    """`PATH=VALUE`, as given."""


class SourceFile(TypedDict):
    """A file that a run was read from."""

    file: str
    bytes: Whole
    sha256: Sha256


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

    hops: Unchecked[int]
    """Packets fully sent on a link, one for every link that they took."""
    kernel: str
    """The release of the kernel that carried the packets."""
    changes: list[Change]
    """The changes made during the run, in order; missing if there were none. The scenario is then that at the end."""
    not_measured: list[TableKey]
    """The tables that stay empty because the engine can't know their content."""
    observed: Origin
    """Where the run comes from, if another program observed it."""
    live: Annotated[LiveMeasurement, LIVE]
    """How a live measurement went, and its verdict."""
    privilege: Unchecked[str]
    """The privilege with which the network was built."""
    cpu: Unchecked[CpuReport]
    guest: Unchecked[GuestFacts]
    capture: Unchecked[CaptureFacts]
    """If the packets were captured."""


class Observed(TypedDict):
    """The part of `run.json` that is known after the run."""

    engine_version: str
    started: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    wall_s: float
    cpu_s: float
    sampling: Sampling
    mss_bytes: Positive
    machine: Annotated[dict[str, str | int], Check(dict[str, object])]
    warnings: list[str]
    tables: Mapping[TableKey, Whole]
    summary: Summary


class TableFile(TypedDict):
    """The file of a table as it was written."""

    bytes: Whole
    sha256: Sha256


class Metadata(InitialMetadata, Observed):
    """The content of a `run.json`, with every optional key filled in."""

    files: dict[TableKey, TableFile]


_OPTIONAL: Mapping[str, type] = {
    "commit": str,
    "path": str,
    "document": dict,
    "expectations": list,
    "overrides": list,
    "position": int,
    "engine_identity": str,
    "files": dict,
}
"""The keys that may be missing, with their types. A missing key gets an empty value of its type. Records that
bufferscope did not write come without an experiment file, and some engines have no identity."""

_RUN = Check(Metadata)
_QUEUEING = {kind: Check(needed) for kind, needed in QUEUEING.items()}
_TRAFFIC = {kind: Check(needed) for kind, needed in TRAFFIC.items()}


def sources(metadata: Metadata) -> Sequence[SourceFile]:
    """The files that the run was read from, if another program observed it; none if an engine carried its packets."""
    observed = metadata["summary"].get("observed")
    return observed["sources"] if observed else ()


def checked(found: Mapping[str, object]) -> Metadata:
    """The content of a `run.json`, with every optional key filled in; raises `Mismatch` for a wrong value."""
    completed = {key: kind() for key, kind in _OPTIONAL.items()} | dict(found)
    plain(completed, "")
    _RUN(completed, "")
    metadata = cast(Metadata, completed)
    _check_time(metadata["started"])
    if live := metadata["summary"].get("live"):
        plain(live, "summary.live", lines=True)
    _check_kinds(metadata["scenario"])
    _check_network(metadata["scenario"])
    return metadata


def schema() -> dict[str, object]:
    """The JSON Schema of `run.json`, made from the types above."""
    runs = _RUN.schema
    runs["properties"]["format"] = {"const": FORMAT}
    scenario = runs["properties"]["scenario"]["properties"]
    scenario["wifi"]["items"]["properties"]["queueing"] = {"oneOf": [_of_kind(*each) for each in _QUEUEING.items()]}
    scenario["traffic"]["items"]["allOf"] = [_if_kind(*each) for each in _TRAFFIC.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "run.json of bufferscope",
        "description": f"How a run was made, and which tables it has. Format {FORMAT}.",
        **runs,
        "required": [key for key in runs["required"] if key not in _OPTIONAL],
    }


def _of_kind(kind: str, check: Check) -> dict[str, Any]:
    return {"properties": {"kind": {"const": kind}}, "required": ["kind"], "allOf": [check.schema]}


def _if_kind(kind: str, check: Check) -> dict[str, Any]:
    return {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": check.schema}


def _check_time(value: str) -> None:
    try:
        is_time = datetime.fromisoformat(value).year > 1
    except ValueError:
        is_time = False
    if not is_time:
        raise Mismatch("started", value, "a time, as in 2026-01-31T12:00:00+00:00")


def _check_kinds(scenario: Scenario) -> None:
    """Check what a kind of traffic, or of queueing, needs besides what all kinds have."""
    for index, network in enumerate(scenario.get("wifi", [])):
        _QUEUEING[network["queueing"]["kind"]](network["queueing"], f"scenario.wifi[{index}].queueing")
    for index, entry in enumerate(scenario["traffic"]):
        if needed := _TRAFFIC.get(entry["kind"]):
            needed(entry, f"scenario.traffic[{index}]")


def _check_network(scenario: Scenario) -> None:
    """Check that names are unique, indices refer to nodes, rates start at 0 in order of time, and paths exist."""
    names = [node["name"] for node in scenario["nodes"]]
    _check_different("scenario.nodes", names)
    _check_different("scenario.traffic", [entry["name"] for entry in scenario["traffic"]])
    nodes, links = len(names) - 1, len(scenario["links"]) - 1
    reached = list(range(len(names)))
    """For every node, the node that represents all nodes connected with it."""
    for index, link in enumerate(scenario["links"]):
        where = f"scenario.links[{index}]"
        for end in link["ends"]:
            _check_index(end, nodes, f"{where}.ends")
        for side in SIDES:
            _check_rate(link[side]["rate"] or (), f"{where}.{side}.rate")
        one, other = (reached[end] for end in link["ends"])
        reached = [one if each == other else each for each in reached]
    for index, network in enumerate(scenario.get("wifi", [])):
        for member, station in enumerate(network["stations"]):
            _check_index(station["link"], links, f"scenario.wifi[{index}].stations[{member}].link")
    for index, entry in enumerate(scenario["traffic"]):
        where = f"scenario.traffic[{index}]"
        for key in ENDS:
            _check_index(entry[key], nodes, f"{where}.{key}")
        if reached[entry["from"]] != reached[entry["to"]]:
            raise Mismatch(f"{where}.to", entry["to"], "a node that a path leads to")


def _check_index(value: int, last: int, where: str) -> None:
    if not value <= last:
        raise Mismatch(where, value, f"a whole number from 0 to {last}")


def _check_different(where: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise Mismatch(where, names, "different names")


def _check_rate(steps: Sequence[RateStep], where: str) -> None:
    times = [step["from_ns"] for step in steps]
    if times and (times[0] != 0 or any(later <= earlier for earlier, later in pairwise(times))):
        raise Mismatch(where, times, "steps from 0 on, in the order of time")
