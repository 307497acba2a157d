"""Sort runs into the arms that are compared, and find the arms that each point has.

Arms differ in what was changed: settings, engine, kernel, experiment, or the names that the user gave. Swept values do
not make arms: two arms are compared at the points where their swept values are the same. If the runs differ in nothing
but swept values, or if no two arms have a point in common, every point is an arm.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from bufferscope.base.errors import InputError
from bufferscope.results.result import Result
from bufferscope.results.variation import Variation
from bufferscope.results.variation.labels import labels
from bufferscope.results.variation.varying import EXPERIMENT
from bufferscope.store.run import Run
from bufferscope.studies.comparison.inputs import Input


@dataclass(frozen=True)
class Arm:
    """The repetitions of one configuration at one point."""

    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class PointArms:
    """The arms that have runs at one point."""

    values: Mapping[str, str]
    """The swept values that they share, path to value; empty where every point is an arm."""
    arms: tuple[Arm, ...]


class Pool(Result):
    """Runs of any experiments, each with the name of its arm: the data from which figures are drawn."""

    def __init__(self, runs: Sequence[Run], names: Sequence[str]) -> None:
        """Put runs together, each with a name."""
        self.runs = tuple(runs)
        self.names = tuple(names)

    @cached_property
    def variation(self) -> Variation:
        """What the runs differ in, with their names first."""
        return Variation(self.runs, self.names)


def arms_by_point(inputs: Sequence[Input]) -> list[PointArms]:
    """The arms of each point, in the order of the runs; raises `InputError` if there is only one arm."""
    inputs = _without_doubles(inputs)
    runs = [run for each in inputs for run in each.runs]
    if not runs:
        raise InputError("nothing to compare: found no runs; allowed: results, runs, or paths of stored runs")
    found = _split(runs, _names(inputs, runs))
    if len({arm.label for point in found for arm in point.arms}) < 2 and len(inputs) > 1:
        found = _split(runs, _by_source(inputs))
    if len({arm.label for point in found for arm in point.arms}) < 2:
        raise InputError(
            f"nothing to compare: {'this run is' if len(runs) == 1 else 'these runs are'} of one kind, "
            f"{runs[0].experiment}, and differ at most in the seed; give runs that differ in something else"
        )
    return found


def _without_doubles(inputs: Sequence[Input]) -> list[Input]:
    """The inputs without the runs that an earlier input of the same name already holds."""
    seen: set[tuple[str, Path]] = set()
    found = []
    for each in inputs:
        origins = [(each.name, run.path.resolve()) for run in each.runs]
        fresh = tuple(run for origin, run in zip(origins, each.runs, strict=True) if origin not in seen)
        seen.update(origins)
        found += [replace(each, runs=fresh)] if fresh else []
    return found


def _names(inputs: Sequence[Input], runs: Sequence[Run]) -> list[str]:
    """The user's name for each run; if inputs hold the same configuration and seed, they are named by path."""
    names = [each.name for each in inputs for _ in each.runs]
    seeds = {(label, run.seed) for label, run in zip(Variation(runs, names).labels, runs, strict=True)}
    return names if len(seeds) == len(runs) else _by_source(inputs)


def _by_source(inputs: Sequence[Input]) -> list[str]:
    """Names for the runs; a run without a name gets the part of its input's path in which the inputs differ."""
    sources = [Path(each.source).parts for each in inputs]
    start, end = _alike(sources), _alike([source[::-1] for source in sources])
    short = [str(Path(*(source[start : len(source) - end] or source[-1:]))) for source in sources]
    return [each.name or name for each, name in zip(inputs, short, strict=True) for _ in each.runs]


def _alike(sequences: Sequence[Sequence[str]]) -> int:
    """The number of leading items that all sequences share."""
    return sum(1 for _ in takewhile(lambda items: len(set(items)) == 1, zip(*sequences, strict=False)))


def _split(runs: Sequence[Run], names: Sequence[str]) -> list[PointArms]:
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
    if all(len(arms) < 2 for arms in at.values()):
        at, values = {(): {}}, {(): {}}
        for run, label in zip(runs, variation.labels, strict=True):
            at[()].setdefault(label, []).append(run)
    return [
        PointArms(values[key], tuple(Arm(label, tuple(own)) for label, own in arms.items())) for key, arms in at.items()
    ]


def _called(names: Sequence[str], changed: Sequence[Mapping[str, str]]) -> list[str]:
    """Labels of arms: the user's name, and what was changed if several arms have that name."""
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        found.setdefault(name, []).append(index)
    texts = [""] * len(names)
    for name, own in found.items():
        for index, text in zip(own, labels([changed[index] for index in own], ()), strict=True):
            texts[index] = ", ".join(part for part in (name, text) if part)
    return texts
