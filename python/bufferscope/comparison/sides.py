"""From runs to sides, which are held against one another, and to the points at which they meet.

Sides differ in what was changed: settings, engine, kernel, experiment, or the names that the user gave. What is *swept*
is common ground: points with the same swept values meet. Where nothing but swept values differs, or no two sides meet
anywhere, every point is a side.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from bufferscope.comparison.inputs import Input
from bufferscope.errors import InputError
from bufferscope.result import Result
from bufferscope.store.run import Run
from bufferscope.variation import Variation
from bufferscope.variation.labels import labels
from bufferscope.variation.varying import EXPERIMENT


@dataclass(frozen=True)
class Side:
    """Repetitions of one thing at one point."""

    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Meeting:
    """A point at which sides meet."""

    values: Mapping[str, str]
    """The swept values that they share, path to value; empty where every point is a side."""
    sides: tuple[Side, ...]


class Pool(Result):
    """Runs of any experiments under the names of their sides: what figures are drawn of."""

    def __init__(self, runs: Sequence[Run], names: Sequence[str]) -> None:
        """Put runs together, each with a name."""
        self.runs = tuple(runs)
        self.names = tuple(names)

    @cached_property
    def variation(self) -> Variation:
        """What differs, led by the names."""
        return Variation(self.runs, self.names)


def meetings(inputs: Sequence[Input]) -> list[Meeting]:
    """The points at which the inputs' runs meet, in the order of the runs; raises `InputError` if there is one side."""
    inputs = _without_doubles(inputs)
    runs = [run for each in inputs for run in each.runs]
    found = _split(runs, _names(inputs, runs))
    if len({side.label for meeting in found for side in meeting.sides}) < 2 and len(inputs) > 1:
        found = _split(runs, _by_source(inputs))
    if len({side.label for meeting in found for side in meeting.sides}) < 2:
        raise InputError(
            f"nothing to compare: {'this run is' if len(runs) == 1 else 'these runs are'} of one kind, "
            f"{runs[0].experiment}, and differ at most in the seed; give runs that differ in something else"
        )
    return found


def _without_doubles(inputs: Sequence[Input]) -> list[Input]:
    """The inputs without runs that the user has named before by the same name."""
    seen: set[tuple[str, Path]] = set()
    found = []
    for each in inputs:
        places = [(each.name, run.path.resolve()) for run in each.runs]
        fresh = tuple(run for place, run in zip(places, each.runs, strict=True) if place not in seen)
        seen.update(places)
        found += [replace(each, runs=fresh)] if fresh else []
    return found


def _names(inputs: Sequence[Input], runs: Sequence[Run]) -> list[str]:
    """What the user calls each run; where inputs hold the same thing with the same seed, they are told by place."""
    names = [each.name for each in inputs for _ in each.runs]
    seeds = {(label, run.seed) for label, run in zip(Variation(runs, names).labels, runs, strict=True)}
    return names if len(seeds) == len(runs) else _by_source(inputs)


def _by_source(inputs: Sequence[Input]) -> list[str]:
    """Names for runs that have none: the part of their inputs' paths that differs."""
    sources = [Path(each.source).parts for each in inputs]
    start, end = _alike(sources), _alike([source[::-1] for source in sources])
    short = [str(Path(*(source[start : len(source) - end] or source[-1:]))) for source in sources]
    return [each.name or name for each, name in zip(inputs, short, strict=True) for _ in each.runs]


def _alike(sequences: Sequence[Sequence[str]]) -> int:
    """How many items all sequences begin with."""
    return sum(1 for _ in takewhile(lambda items: len(set(items)) == 1, zip(*sequences, strict=False)))


def _split(runs: Sequence[Run], names: Sequence[str]) -> list[Meeting]:
    variation = Variation(runs, names)
    swept = {key for key in variation.keys if any(key in run.point for run in runs)}
    shared = [{key: value for key, value in row.items() if key in swept} for row in variation.values]
    order = [EXPERIMENT, *variation.keys]
    changed = [{key: row[key] for key in order if key in row and key not in swept} for row in variation.values]
    called = _called(names, changed)
    at: dict[Hashable, dict[str, list[Run]]] = {}
    values: dict[Hashable, Mapping[str, str]] = {}
    for run, label, own in zip(runs, called, shared, strict=True):
        key = tuple(own.items())
        values[key] = own
        at.setdefault(key, {}).setdefault(label, []).append(run)
    if all(len(sides) < 2 for sides in at.values()):
        at, values = {(): {}}, {(): {}}
        for run, label in zip(runs, variation.labels, strict=True):
            at[()].setdefault(label, []).append(run)
    return [
        Meeting(values[key], tuple(Side(label, tuple(own)) for label, own in sides.items()))
        for key, sides in at.items()
    ]


def _called(names: Sequence[str], changed: Sequence[Mapping[str, str]]) -> list[str]:
    """Labels of sides: the user's name, and what was changed where that tells sides of one name apart."""
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        found.setdefault(name, []).append(index)
    texts = [""] * len(names)
    for name, own in found.items():
        for index, text in zip(own, labels([changed[index] for index in own], ()), strict=True):
            texts[index] = ", ".join(part for part in (name, text) if part)
    return texts
