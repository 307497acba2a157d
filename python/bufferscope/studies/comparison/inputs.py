"""The inputs of a comparison: runs, directories of runs and results, each with the user's name for it, if any."""

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from bufferscope.base.errors import InputError, StoreError
from bufferscope.results.result import Result
from bufferscope.store.finding import find_anywhere, in_order
from bufferscope.store.run import Run

What = str | PathLike[str] | Run | Result | Sequence[Run]
"""What can be compared: a path, or runs that are already loaded."""


@dataclass(frozen=True)
class Input:
    """Runs that the user named together."""

    name: str
    """The user's name for them; if it is empty, they are named by what they differ in."""
    source: str
    """The path that they come from."""
    runs: tuple[Run, ...]


def of(what: What, name: str = "") -> Input:
    """An input from a path or from runs; raises `StoreError` if there are no runs."""
    if isinstance(what, Run):
        return Input(name, str(what.path), (what,))
    if isinstance(what, Result):
        return Input(name, str(what.runs[0].experiment_dir), what.runs)
    if isinstance(what, str | PathLike):
        matching = paths(fspath(what))
        runs = [run for path in matching for run in find_anywhere(path)]
        # A pattern's paths come in the order of the alphabet, which has nothing to do with that of the points.
        return Input(name, fspath(what), tuple(in_order(runs) if len(matching) > 1 else runs))
    runs = list(what) if isinstance(what, Iterable) else []
    if not runs or not all(isinstance(run, Run) for run in runs):
        raise InputError(f"nothing to compare: found {what!r:.60}; allowed: a result, a run, runs, or a path")
    return Input(name, str(runs[0].experiment_dir), tuple(runs))


def written(text: str) -> Input:
    """An input as written on the command line: a path, or `NAME=PATH`."""
    name, equals, path = text.partition("=")
    if not equals or os.path.lexists(text):
        return of(text)
    if not (name.strip() and path):
        raise InputError(f"found {text!r}; allowed: a path, or NAME=PATH")
    return of(path, name.strip())


def all_of(what: Sequence[What | Mapping[str, What]], labels: Sequence[str] | None) -> list[Input]:
    """The inputs of `bufferscope.compare`, which may be mappings of names to inputs; `labels` name all in order."""
    inputs = [
        found
        for each in what
        for found in ([of(one, name) for name, one in each.items()] if isinstance(each, Mapping) else [of(each)])
    ]
    return named(inputs, labels)


def named(inputs: Sequence[Input], labels: Sequence[str] | None) -> list[Input]:
    """The inputs with these names; raises `InputError` unless there is one name for each input."""
    if not labels:
        return list(inputs)
    if len(labels) != len(inputs):
        raise InputError(f"found {len(labels)} labels for {len(inputs)} things to compare; allowed: one for each")
    return [Input(label, each.source, each.runs) for label, each in zip(labels, inputs, strict=True)]


def paths(text: str) -> list[Path]:
    """The paths that match a pattern (`*`, `?`, `[...]`), or the path itself."""
    try:
        exists = Path(text).exists()
    except (OSError, ValueError) as error:  # too long for a path, or with a null character
        raise StoreError(f"{text[:60]!r}: not a path: {getattr(error, 'strerror', error)}") from None
    if exists or not glob.has_magic(text):
        return [Path(text)]
    found = sorted(glob.glob(text))  # noqa: PTH207  # Path.glob takes no pattern that begins at the root
    if not found:
        raise StoreError(f"{text}: no file or directory matches")
    return [Path(path) for path in found]
