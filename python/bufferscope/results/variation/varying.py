"""Find which settings vary among runs and with what values, and make labels from them."""

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bufferscope.model.identity import scenario_digest
from bufferscope.results.variation.labels import labels
from bufferscope.results.variation.scenario_diff import unlike
from bufferscope.results.variation.settings import short
from bufferscope.store.metadata import sources
from bufferscope.store.settings import settings

if TYPE_CHECKING:
    from bufferscope.metrics.records import RunRecords

ENGINE, KERNEL, FILE, EXPERIMENT = "engine", "kernel", "file", "experiment"
WHOLE = (ENGINE, KERNEL, FILE, EXPERIMENT)
"""What distinguishes runs besides their settings."""
AS_FILED = "as in the file"
"""Shown for a setting that the run takes from its file, if its scenario doesn't show the value either."""

Row = dict[str, str]
"""The varying keys of a run, path to value in a word or two."""


class _VariedPoint(NamedTuple):
    """A point: the user's name for it, its experiment, and one of its repetitions."""

    name: str
    experiment: str
    run: "RunRecords"


class Variation:
    """What differs among runs, apart from their seeds."""

    def __init__(self, runs: "Sequence[RunRecords]", names: Sequence[str] | None = None) -> None:
        """Examine runs; `names` has the user's name of each run, which also distinguishes it and begins its label."""
        called = names or [""] * len(runs)
        identities = [_identity(run, name) for run, name in zip(runs, called, strict=True)]
        found: dict[Hashable, _VariedPoint] = {}
        for identity, run, name in zip(identities, runs, called, strict=True):
            found.setdefault(identity, _VariedPoint(name, _value(run, EXPERIMENT), run))
        points = list(found.values())
        rows = _rows(points)
        texts = _texts(points, rows)
        position = {identity: index for index, identity in enumerate(found)}
        self.keys = _keys(points, rows)
        """The varying keys: swept paths, paths of other settings, then `engine`, `kernel`, `file` and `experiment`."""
        self.values: list[Row] = [rows[position[identity]] for identity in identities]
        """Each run's values of the varying keys, in a word or two; without keys that its experiment does not have."""
        self.labels: list[str] = [texts[position[identity]] for identity in identities]
        """The label of each run; only repetitions of one point share a label."""
        self._by_run = {id(run): (run, row) for run, row in zip(runs, self.values, strict=True)}
        self.is_named = any(called)
        """Whether the user's names begin the labels."""
        self.titled = _titled(points, self.keys)
        """The keys whose values the labels are made of."""

    def of(self, run: "RunRecords") -> Row:
        """The values of one of the runs."""
        return self._by_run[id(run)][1]


def _identity(run: "RunRecords", name: str) -> Hashable:
    """A key that is equal only for repetitions of the same point."""
    known: str | None = getattr(run, "scenario_digest", None)
    told = (_value(run, key) for key in WHOLE)
    return name, *told, tuple(run.point.items()), known or scenario_digest(run.scenario)


def _value(run: "RunRecords", key: str) -> str:
    meta = run.meta
    values = {
        ENGINE: meta["engine"],
        KERNEL: meta["summary"].get("kernel", ""),
        FILE: ", ".join(each["file"] for each in sources(meta)),
        EXPERIMENT: meta["experiment"],
    }
    return values[key]


def _rows(points: Sequence[_VariedPoint]) -> list[Row]:
    """The values of the varying keys, point by point; settings are compared only within an experiment."""
    rows: list[Row] = [{} for _ in points]
    for experiment in dict.fromkeys(point.experiment for point in points):
        own = [index for index, point in enumerate(points) if point.experiment == experiment]
        for index, row in zip(own, _settings([points[index].run for index in own]), strict=True):
            rows[index] = row
    for key in WHOLE:
        values = [_value(point.run, key) for point in points]
        if len({value for value in values if value}) > 1:
            rows = [row | {key: value} if value else row for row, value in zip(rows, values, strict=True)]
    return rows


def _settings(runs: "Sequence[RunRecords]") -> list[Row]:
    """For the points of one experiment: the settings that differ, and all other differences of their scenarios."""
    paths = dict.fromkeys(path for run in runs for path in run.point)
    paths |= dict.fromkeys(path for run in runs for path in settings(run.meta))
    rows: list[Row] = [{} for _ in runs]
    for path in paths:
        values = _column(runs, path)
        if len(set(values)) > 1:
            rows = [row | {path: value} for row, value in zip(rows, values, strict=True)]
    alike: dict[Hashable, list[int]] = {}
    for index, row in enumerate(rows):
        alike.setdefault(tuple(row.items()), []).append(index)
    for members in alike.values():
        group = [index for index in members if not sources(runs[index].meta)]  # what these differ in was not chosen
        for index, more in zip(group, unlike([runs[index].scenario for index in group]), strict=True):
            rows[index] = rows[index] | more
    return rows


def _column(runs: "Sequence[RunRecords]", path: str) -> list[str]:
    """A setting's value in each run; tables are shortened to their first word if that distinguishes them."""
    written = [settings(run.meta).get(path) for run in runs]
    values = [short(run, path, text) or AS_FILED for run, text in zip(runs, written, strict=True)]
    if any(text and text.startswith("{") for text in written):
        heads = {value: value if value == AS_FILED else value.partition(" ")[0] for value in values}
        if len(set(heads.values())) == len(heads):
            return [heads[value] for value in values]
    return values


def _keys(points: Sequence[_VariedPoint], rows: Sequence[Row]) -> tuple[str, ...]:
    found = dict.fromkeys(key for row in rows for key in row)
    swept = [key for key in found if any(key in point.run.point for point in points)]
    last = [key for key in WHOLE if key in found]
    return tuple(dict.fromkeys([*swept, *(key for key in found if key not in last), *last]))


def _texts(points: Sequence[_VariedPoint], rows: Sequence[Row]) -> list[str]:
    """Labels: the user's name, the experiment if there are several, and what varies within both."""
    parts: dict[tuple[str, str], list[int]] = {}
    for index, point in enumerate(points):
        parts.setdefault((point.name, point.experiment), []).append(index)
    several = len({point.experiment for point in points}) > 1
    texts = [""] * len(points)
    taken: set[str] = set()
    for (name, experiment), own in parts.items():
        named = len({other for other_name, other in parts if other_name == name}) == 1 if name else not several
        head = [name] * bool(name) + [experiment] * (not named)
        swept = dict.fromkeys(key for index in own for key in points[index].run.point)
        within = labels([rows[index] for index in own], swept)
        if len(own) == 1:
            within = [] if head else [", ".join(points[own[0]].run.point.values())]
        for index, text in zip(own, within or [""], strict=True):
            texts[index] = _unused(", ".join([*head, *([text] if text else [])]), taken)
            taken.add(texts[index])
    return texts


def _titled(points: Sequence[_VariedPoint], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(keys) if len(points) > 1 else tuple(points[0].run.point) if points else ()


def _unused(text: str, taken: Collection[str]) -> str:
    """The text, with a number added if another point already has it."""
    number, candidate = 1, text
    while candidate and candidate in taken:
        number += 1
        candidate = f"{text} ({number})"
    return candidate
