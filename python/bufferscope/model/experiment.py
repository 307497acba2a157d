"""Experiments: the catalogue that comes with bufferscope, and users' own TOML files."""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from os import PathLike, fspath
from os.path import isfile
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from bufferscope import _core
from bufferscope.base import reading
from bufferscope.base.bounded import Name, Whole
from bufferscope.base.errors import ExperimentError, InputError, printable
from bufferscope.model import metric_names as naming
from bufferscope.model.expectations import ExpectationEntry
from bufferscope.model.figure_names import NAMES as FIGURES
from bufferscope.model.figure_names import FigureName, needed
from bufferscope.model.overrides import Overrides, as_texts
from bufferscope.model.recorded import explanation, missing, unrecorded
from bufferscope.model.scenario import Scenario

TEACHING_ORDER = (
    "ucas-reproduce",
    "ucas-queue-sizes",
    "mininet-buffer-size",
    "mininet-page-times",
    "mininet-rtt-equation",
    "ucas-mitigate",
    "mininet-mitigations",
    "battling-tcp-bidirectional",
    "battling-tcp-asymmetric",
    "battling-rrul",
    "battling-rrul-path",
    "battling-udp-flood",
    "lncc-ring",
    "lncc-qdisc",
    "lncc-surface",
    "lncc-window",
    "lncc-bql",
    "dark-throughput-delay",
    "dark-smokeping",
    "dark-cubic-trace",
    "dark-reaction-time",
    "dark-starvation",
    "dark-wifi",
    "dark-wifi-shared",
    "wifi-anomaly",
    "wifi-anomaly-arrivals",
    "wifi-anomaly-losses",
    "wifi-latency",
    "dark-3g",
    "dark-shaping",
    "dark-web",
    "dark-netalyzr",
    "congestion-controls",
    "disciplines",
    "l4s",
)
"""The order of the catalogue as a course: the phenomenon, the queue's size, its users, the cures, where it is
found in the Internet, who fills it, and all cures side by side."""
LARGEST_FILE_BYTES = 1 << 20
"""An experiment is a page of text; a larger file is something else."""


class SweepAxis(TypedDict):
    """The number and a digest of a swept key's values: equal sweeps have equal axes."""

    values: Whole
    digest: str


class PopulationWords(TypedDict):
    """The population of an experiment's file."""

    sessions: int
    """The number of members that are run by default."""
    groups: dict[str, float]
    """The groups' weights by name."""


class DrawnMember(TypedDict):
    """What was drawn for a member of a population."""

    group: Name
    values: dict[str, str]
    """The drawn values, path to value as an experiment file has it."""


class ExperimentDocument(TypedDict):
    """An experiment file's words besides the set-up."""

    title: str
    source: str | None
    document: str | None
    """The short name of the source."""
    description: str | None
    figures: list[FigureName]
    notes: str | None
    repeat: int
    """Runs of each point by default; with a population, its members."""
    population: NotRequired[PopulationWords]
    sweep: dict[str, list[str]]
    """The swept keys' paths, each with the labels of its values."""


@lru_cache(maxsize=32)
def _scenario(core: _core.Point) -> Scenario:
    scenario: Scenario = json.loads(core.scenario)
    return scenario


class Point:
    """One choice of the experiment's swept values, or a member of the population there."""

    def __init__(self, core: _core.Point) -> None:
        """Wrap a point of the native core.

        Parameters
        ----------
        core
            The point in the native core.
        """
        self.core = core
        self.values = core.values
        """The chosen values, path to label; empty without a sweep."""
        self.notes = tuple(core.notes)
        """What the user should know about its values: a rate in bytes per second, for instance."""

    def member(self, number: int) -> "Point":
        """The member of the population with this number.

        Parameters
        ----------
        number
            The member's number, which is the seed of its run.

        Returns
        -------
        Point
            The member; the point itself if there is no population.

        Raises
        ------
        ExperimentError
            The member's values are impossible together.
        """
        found = self.core.member(number)
        return self if found.drawn is None else Point(found)

    @property
    def drawn(self) -> DrawnMember | None:
        """What was drawn for the member; None for a point."""
        drawn: DrawnMember | None = json.loads(self.core.drawn or "null")
        return drawn

    @property
    def scenario(self) -> Scenario:
        """The resolved scenario; only the last few are cached, because sweeps can be large."""
        return _scenario(self.core)

    def __str__(self) -> str:
        return ", ".join(f"{path} = {label}" for path, label in self.values.items()) or "as in the file"


class Experiment:
    """A checked experiment; a file with errors is refused."""

    def __init__(
        self,
        name: str,
        content: bytes,
        file: str,
        overrides: Overrides = (),
        named: reading.NamedFiles | None = None,
    ) -> None:
        """Parse and check a file's content.

        Parameters
        ----------
        name
            The experiment's name, under which its runs are stored.
        content
            The TOML file's content.
        file
            What messages call the file.
        overrides
            Changes to keys of the file, as for `bufferscope.run`.
        named
            The files that the experiment names, such as traces. Default: none.

        Raises
        ------
        ExperimentError
            The file or an override has mistakes: one line of text for each.
        """
        file, texts = printable(file), as_texts(overrides)
        _check_text(texts)
        self.named = reading.NamedFiles() if named is None else named
        """The files that it names."""
        core = _core.load(content, file, texts, self.named)
        self.name = name
        self.path: str | None = None
        """The path of its file, as it was given; `None` if it comes with bufferscope."""
        self.text = content.decode("utf-8")
        self.overrides = tuple(texts)
        """`PATH=VALUE`, as given."""
        self.document: ExperimentDocument = json.loads(core.document)
        """The file's own words: title, source, description, figures, notes, sweep."""
        self.expectations: list[ExpectationEntry] = json.loads(core.expectations)
        self.points = [Point(point) for point in core.points]
        problems = [*_figures_problems(self.document["figures"]), *_metrics_problems(self.expectations, self.points)]
        if problems:
            raise ExperimentError("\n".join(f"{file}: {problem}" for problem in problems))
        self.notes = (*core.notes, *self._unrecorded())
        """What the user should know before it runs, one line each; the notes of all points, without duplicates."""

    def with_overrides(self, added: Overrides) -> "Experiment":
        """The same experiment with further overrides.

        Parameters
        ----------
        added
            Changes to keys of the file, which are applied after those that it already has.

        Returns
        -------
        Experiment
            A new experiment; this one is unchanged.

        Raises
        ------
        ExperimentError
            An override is impossible.
        """
        overrides = [*self.overrides, *as_texts(added)]
        found = Experiment(self.name, self.text.encode(), self.path or self.name, overrides, self.named)
        found.path = self.path
        return found

    def _unrecorded(self) -> Iterator[str]:
        """Report figures and expectations on tables that no point records: `record` cannot be swept."""
        scenario = self.points[0].scenario
        empty = unrecorded(scenario)
        if not empty:
            return
        for position, name in enumerate(self.document["figures"], start=1):
            if without := next((table for table in needed(name) if table in empty), None):
                yield f"figures[{position}]: {name} will be missing: {explanation(scenario, without)}"
        for position, expectation in enumerate(self.expectations, start=1):
            table = missing(expectation["metric"], empty)
            if table and expectation["comparisons"]:
                why = explanation(scenario, table)
                yield f"expect[{position}]: {expectation['metric']} will not be measured: {why}"

    @property
    def title(self) -> str:
        """What the experiment shows, in one line."""
        return self.document["title"]

    @property
    def swept(self) -> dict[str, list[str]]:
        """The swept keys' paths, each with the labels of its values."""
        return {path: list(labels) for path, labels in self.document["sweep"].items()}

    def values(self, point: Point) -> dict[str, dict[str, Any]]:
        """The swept values of one point: a sweep that leaves only this point.

        Parameters
        ----------
        point
            One of `points`.

        Returns
        -------
        dict
            For each swept key, the value in TOML's types by its label.
        """
        sweep: dict[str, Any] = dict(tomllib.loads(self.text).get("sweep", {}))
        for path, value in map(_sweep_override, self.overrides):
            if path in point.values:
                sweep[path] = value
        found = {}
        for path, label in point.values.items():
            values = sweep[path]
            value = values[label] if isinstance(values, dict) else values[self.swept[path].index(label)]
            found[path] = {label: value}
        return found

    @property
    def settings(self) -> list[str]:
        """The overrides without those of the sweep: what `values` needs beside it to make the same point again."""
        return [override for override in self.overrides if not _sweep_override(override)[0]]

    @property
    def choices(self) -> str:
        """The swept keys with their values, for people: `PATH=A or B or C`."""
        return "; ".join(f"{path}={' or '.join(labels)}" for path, labels in self.swept.items())

    @cached_property
    def axes(self) -> dict[str, SweepAxis]:
        """The swept keys, each with the number and a digest of its values: equal sweeps have equal axes."""
        return {
            path: {"values": len(labels), "digest": _digest(labels)} for path, labels in self.document["sweep"].items()
        }

    @cached_property
    def statements(self) -> str:
        """A digest of all expectations, by which runs, which keep only their own, show whether their files agreed."""
        return _digest(self.expectations)

    def having(self, wanted: Sequence[str]) -> list[Point]:
        """The points that have all of these swept values.

        Parameters
        ----------
        wanted
            `PATH=LABEL` strings.

        Returns
        -------
        list of Point
            At least one point.

        Raises
        ------
        InputError
            A key is not swept, a label does not exist, or no point has all values.
        """
        chosen = [self._choice(text, "--point") for text in wanted]
        points = [point for point in self.points if all(point.values[path] == label for path, label in chosen)]
        if not points:
            raise InputError(f"--point: found {' and '.join(wanted)}; allowed: each key once")
        return points

    def positions(self, wanted: Sequence[str]) -> list[int]:
        """The numbers of the points that have one of the wanted values of each key that is named.

        Parameters
        ----------
        wanted
            `PATH=LABEL` strings; a key may be named several times.

        Returns
        -------
        list of int
            Indices of `points`.

        Raises
        ------
        InputError
            A key is not swept, or a label does not exist.
        """
        labels: dict[str, set[str]] = {}
        for path, label in (self._choice(text, "--only") for text in wanted):
            labels.setdefault(path, set()).add(label)
        return [
            position
            for position, point in enumerate(self.points)
            if all(point.values[path] in among for path, among in labels.items())
        ]

    def _choice(self, text: str, option: str) -> tuple[str, str]:
        """The swept path and the label that `PATH=LABEL` names; `option` gave it, for the message."""
        path, equals, label = (part.strip() for part in text.partition("="))
        swept = self.swept
        if not swept:
            raise InputError(
                f"{option}: found {text}; allowed: none, because the experiment has no sweep; --set changes a key"
            )
        if not equals:
            raise InputError(f"{option}: found {text}; allowed: PATH=VALUE, of {self.choices}")
        if path not in swept:
            raise InputError(
                f"{option}: found {path}, which is not swept; allowed: {self.choices}{_guess(path, swept)}"
            )
        if label not in swept[path]:
            allowed = " or ".join(swept[path])
            raise InputError(f"{option} {path}: found {label}; allowed: {allowed}{_guess(label, swept[path])}")
        return path, label

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}, {len(self.points)} point{'s' * (len(self.points) != 1)})"


def _sweep_override(override: str) -> tuple[str, Any]:
    """The swept path and the values of `sweep.PATH=VALUE`; an empty path for another override."""
    written, _, value = override.partition("=")
    head, _, path = written.strip().partition(".")
    if head != "sweep":
        return "", None
    return path.strip().strip("\"'"), tomllib.loads(f"value = {value}")["value"]


def catalogue() -> list[str]:
    """The names of the experiments that come with bufferscope, in teaching order.

    Returns
    -------
    list of str
        The names, which `run`, `choose` and `Simulation` take.

    Examples
    --------
    >>> "ucas-reproduce" in catalogue()
    True
    """
    names = (entry.name.removesuffix(".toml") for entry in _catalogue_dir().iterdir() if entry.name.endswith(".toml"))
    return sorted(names, key=teaching_position)


def teaching_position(name: str) -> tuple[int, str]:
    """A key to sort experiments by: those of `TEACHING_ORDER` as listed there, then all others by name."""
    position = TEACHING_ORDER.index(name) if name in TEACHING_ORDER else len(TEACHING_ORDER)
    return position, name


def load(name_or_path: str | PathLike[str], overrides: Overrides = ()) -> Experiment:
    """Load an experiment of the catalogue by its name, or a TOML file by its path.

    `overrides` are `PATH=VALUE` texts, as in `link.bottleneck.rate=2mbit`, or values by path. Raises `ExperimentError`,
    whose text has a line for each problem: where it is and what is allowed.
    """
    wanted = fspath(name_or_path)
    content = read(wanted)
    if wanted in catalogue():
        return Experiment(wanted, content, f"{wanted}.toml", overrides, reading.NamedFiles(Path(str(_catalogue_dir()))))
    named = reading.NamedFiles(Path(wanted).parent)
    experiment = Experiment(name_of(Path(wanted)), content, wanted, overrides, named)
    experiment.path = printable(wanted)
    return experiment


def read(name_or_path: str) -> bytes:
    """The content of an experiment from the catalogue or a file; raises `ExperimentError` if it does not exist."""
    if name_or_path in catalogue():
        return (_catalogue_dir() / f"{name_or_path}.toml").read_bytes()
    # Path.is_file fails for a name that is too long.
    if not _means_a_path(name_or_path) and not isfile(name_or_path):  # noqa: PTH113
        raise ExperimentError(_unknown(name_or_path))
    return _read(Path(name_or_path))


def name_of(path: Path) -> str:
    """The name for an experiment file's results: the file's name in characters that suit every file system."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.")[:80] or "experiment"


def _digest(value: object) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:8]


def _catalogue_dir() -> Traversable:
    return files("bufferscope.model") / "catalogue"


def _means_a_path(wanted: str) -> bool:
    return "/" in wanted or wanted.endswith(".toml")


def _unknown(wanted: str) -> str:
    names = catalogue()
    close = difflib.get_close_matches(wanted, names, n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    found = f"{wanted[:80]!r}{'...' if len(wanted) > 80 else ''}"
    return f"no experiment is called {found}; {guess}The catalogue: {', '.join(names)}; or give a file's path"


def _read(path: Path) -> bytes:
    """An experiment file's content; no more is read than a valid file can have."""
    try:
        return reading.content(path, LARGEST_FILE_BYTES)
    except reading.Unreadable as error:
        raise _unreadable(path, str(error)) from None


def _unreadable(path: Path, reason: str) -> ExperimentError:
    shown = printable(str(path))
    shown = shown if len(shown) <= 200 else f"{shown[:200]}..."
    return ExperimentError(f"{shown}: {reason}; expected an experiment's TOML file")


def _check_text(overrides: Sequence[str]) -> None:
    for override in overrides:
        try:
            override.encode()
        except UnicodeEncodeError:
            raise ExperimentError(f"--set: found {override!r:.80} (not UTF-8); allowed: text") from None


def _guess(found: str, allowed: Iterable[str]) -> str:
    close = difflib.get_close_matches(found, list(allowed), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _figures_problems(names: Sequence[str]) -> Iterator[str]:
    for position, name in enumerate(names, start=1):
        if name not in FIGURES:
            yield f'figures[{position}]: found "{name}"; allowed: {", ".join(FIGURES)}{_guess(name, FIGURES)}'


def _metrics_problems(expectations: Sequence[ExpectationEntry], points: Sequence[Point]) -> Iterator[str]:
    """Report each expectation whose points cannot have its metric."""
    for position, expectation in enumerate(expectations, start=1):
        for comparison in expectation["comparisons"][:1]:
            metric, scenario = expectation["metric"], points[comparison["point"]].scenario
            if not naming.exists(scenario, metric):
                close = ", ".join(naming.closest(scenario, metric))
                yield f'expect[{position}].metric: found "{metric}"; allowed: a metric of this scenario; close: {close}'
