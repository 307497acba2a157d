"""The known differences of a matrix, as in causes.toml."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bufferscope.base.errors import InputError
from bufferscope.studies.agreement.tolerances import tolerance_of
from matrix import Matrix


@dataclass(frozen=True)
class Cause:
    """Why some scenarios exceed some tolerances."""

    title: str
    text: str
    places: tuple[tuple[str, str], ...]
    """Scenario and metric."""


def causes(whole: Matrix) -> list[Cause]:
    """The known differences of a matrix.

    Raises `InputError` if one names a scenario or metric that does not exist. Only of random scenarios, the file may
    have others than those that were drawn.
    """
    known = set(whole.scenarios)
    found = []
    for entry in tomllib.loads(whole.causes.read_text(encoding="utf-8")).get("cause", []):
        places = [(scenario, metric) for scenario, named in entry["differs"].items() for metric in named]
        if whole.is_random:
            places = [(scenario, metric) for scenario, metric in places if scenario in known]
        for scenario, metric in places:
            if scenario not in known or tolerance_of(metric) is None:
                name = whole.causes.name
                raise InputError(f"{name}: {entry['title']}: there is no {metric} of {scenario!r} with a tolerance")
        found.append(Cause(entry["title"], entry["text"].strip(), tuple(places)))
    return found


def explained(known: Iterable[Cause]) -> Mapping[tuple[str, str], Cause]:
    """The cause for each scenario and metric."""
    return {place: cause for cause in known for place in cause.places}
