"""The known differences of a matrix, as in causes.toml."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bufferscope.base.errors import InputError
from bufferscope.studies.agreement.tolerances import tolerance_of


@dataclass(frozen=True)
class Cause:
    """Why some scenarios exceed some tolerances."""

    title: str
    text: str
    places: tuple[tuple[str, str], ...]
    """Scenario and metric."""


def causes(text: str, scenarios: Iterable[str], name: str = "causes.toml") -> list[Cause]:
    """The entries of the file of this name.

    Raises `InputError` if one names a scenario or metric that does not exist.
    """
    known = set(scenarios)
    found = []
    for entry in tomllib.loads(text).get("cause", []):
        places = [(scenario, metric) for scenario, named in entry["differs"].items() for metric in named]
        for scenario, metric in places:
            if scenario not in known or tolerance_of(metric) is None:
                raise InputError(f"{name}: {entry['title']}: there is no {metric} of {scenario!r} with a tolerance")
        found.append(Cause(entry["title"], entry["text"].strip(), tuple(places)))
    return found


def explained(known: Iterable[Cause]) -> Mapping[tuple[str, str], Cause]:
    """The cause for each scenario and metric."""
    return {place: cause for cause in known for place in cause.places}
