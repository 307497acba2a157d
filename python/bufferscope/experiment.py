"""Experiments: the catalogue that comes with bufferscope, and anybody's own TOML files."""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from bufferscope import _core
from bufferscope.errors import ExperimentError, InputError
from bufferscope.figures import NAMES as FIGURES
from bufferscope.metrics import naming

LARGEST_FILE_BYTES = 1 << 20
"""An experiment is a page of text; what is larger is some other file."""


@lru_cache(maxsize=32)
def _scenario(core: _core.Point) -> Mapping[str, Any]:
    scenario: Mapping[str, Any] = json.loads(core.scenario)
    return scenario


class Point:
    """One choice of the experiment's swept values."""

    def __init__(self, core: _core.Point) -> None:
        """Wrap a point of the native core."""
        self.core = core
        self.values = core.values
        """The choice, path to label; empty without a sweep."""

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The resolved scenario; of a large sweep only the last few are kept."""
        return _scenario(self.core)

    def __str__(self) -> str:
        return ", ".join(f"{path} = {label}" for path, label in self.values.items()) or "as in the file"


class Experiment:
    """A checked experiment: whatever can be wrong with its file has been refused."""

    def __init__(self, name: str, content: bytes, file: str, overrides: Sequence[str] = ()) -> None:
        """Parse and check a file's content; messages call it `file`. Raises `ExperimentError`."""
        core = _core.load(content, file, list(overrides))
        self.name = name
        self.path: str | None = None
        """Where its file is, as it was given; `None`: it comes with bufferscope."""
        self.text = content.decode("utf-8")
        self.overrides = tuple(overrides)
        """`PATH=VALUE`, as given."""
        self.document: Mapping[str, Any] = json.loads(core.document)
        """The file's own words: title, source, description, figures, notes, sweep."""
        self.expectations: list[Mapping[str, Any]] = json.loads(core.expectations)
        self.points = [Point(point) for point in core.points]
        _check_figures(self.document["figures"], file)
        _check_metrics(self.expectations, self.points, file)

    @property
    def title(self) -> str:
        """What the experiment shows, in one line."""
        return str(self.document["title"])

    @property
    def choices(self) -> str:
        """The swept keys with their values, for people: `PATH=A or B or C`."""
        swept = {path: dict.fromkeys(point.values[path] for point in self.points) for path in self.points[0].values}
        return "; ".join(f"{path}={' or '.join(labels)}" for path, labels in swept.items())

    @cached_property
    def axes(self) -> dict[str, dict[str, Any]]:
        """The swept keys, each with the number of its values and a digest of them: equal sweeps have equal axes."""
        sweep: Mapping[str, Sequence[str]] = self.document["sweep"]
        return {path: {"values": len(labels), "digest": _digest(labels)} for path, labels in sweep.items()}

    def having(self, wanted: Sequence[str]) -> list[Point]:
        """The points that have all `wanted` swept values (`PATH=LABEL`); raises `InputError` if none has."""
        chosen = [choice.partition("=") for choice in wanted]
        points = [p for p in self.points if all(p.values.get(path.strip()) == label for path, _, label in chosen)]
        if not points:
            allowed = self.choices or "nothing, as this experiment has a single point; --set changes a key"
            raise InputError(f"--point: found {' and '.join(wanted)}; allowed: {allowed}")
        return points

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}, {len(self.points)} point{'s' * (len(self.points) != 1)})"


def catalogue() -> list[str]:
    """The names of the experiments that come with bufferscope.

    >>> "ucas-reproduce" in catalogue()
    True
    """
    return sorted(entry.name.removesuffix(".toml") for entry in _shelf().iterdir() if entry.name.endswith(".toml"))


def load(name_or_path: str | PathLike[str], overrides: Sequence[str] = ()) -> Experiment:
    """Load an experiment of the catalogue by its name, or a TOML file by its path.

    `overrides` are `PATH=VALUE` texts, as in `link.bottleneck.rate=2mbit`. Raises `ExperimentError`, whose text tells
    where the problem is and what is allowed.
    """
    wanted = fspath(name_or_path)
    if wanted in catalogue():
        return Experiment(wanted, (_shelf() / f"{wanted}.toml").read_bytes(), f"{wanted}.toml", overrides)
    path = Path(wanted)
    if not _means_a_path(wanted) and not path.is_file():
        raise ExperimentError(_unknown(wanted))
    experiment = Experiment(name_of(path), _read(path), wanted, overrides)
    experiment.path = wanted
    return experiment


def name_of(path: Path) -> str:
    """What an experiment file's results are filed under: the file's name in letters that suit every file system."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.")[:80] or "experiment"


def _digest(labels: Sequence[str]) -> str:
    return sha256(json.dumps(labels).encode()).hexdigest()[:8]


def _shelf() -> Traversable:
    return files("bufferscope") / "experiments"


def _means_a_path(wanted: str) -> bool:
    return "/" in wanted or wanted.endswith(".toml")


def _unknown(wanted: str) -> str:
    names = catalogue()
    close = difflib.get_close_matches(wanted, names, n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    return f"no experiment is called {wanted!r}; {guess}The catalogue: {', '.join(names)}; or give a file's path"


def _read(path: Path) -> bytes:
    """An experiment file's content, of which no more is read than could be right."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ExperimentError(f"{path}: {reason}; expected an experiment's TOML file") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise ExperimentError(f"{path}: found more than {LARGEST_FILE_BYTES} bytes; allowed: an experiment's TOML file")
    return content


def _check_figures(names: Sequence[str], file: str) -> None:
    for position, name in enumerate(names, start=1):
        if name not in FIGURES:
            close = difflib.get_close_matches(name, FIGURES, n=1)
            guess = f"; did you mean {close[0]}?" if close else ""
            raise ExperimentError(f'{file}: figures[{position}]: found "{name}"; allowed: {", ".join(FIGURES)}{guess}')


def _check_metrics(expectations: Sequence[Mapping[str, Any]], points: Sequence[Point], file: str) -> None:
    """Refuse an expectation of a metric that the points it is about cannot have."""
    for position, expectation in enumerate(expectations, start=1):
        for comparison in expectation["comparisons"][:1]:
            metric, scenario = expectation["metric"], points[comparison["point"]].scenario
            if not naming.exists(scenario, metric):
                close = ", ".join(naming.closest(scenario, metric))
                raise ExperimentError(
                    f'{file}: expect[{position}].metric: found "{metric}"; allowed: a metric of this scenario; '
                    f"close: {close}"
                )
