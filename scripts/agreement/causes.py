"""The known differences of causes.toml."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bufferscope.agreement.aims import aim_of
from bufferscope.errors import InputError

FILE = Path(__file__).parent / "causes.toml"


@dataclass(frozen=True)
class Cause:
    """Why some scenarios miss some aims."""

    title: str
    text: str
    places: tuple[tuple[str, str], ...]
    """Scenario and metric."""


def causes(text: str, scenarios: Iterable[str]) -> list[Cause]:
    """The file's entries; raises `InputError` if one names a scenario or metric that does not exist."""
    known = set(scenarios)
    found = []
    for entry in tomllib.loads(text).get("cause", []):
        places = [(scenario, metric) for scenario, named in entry["differs"].items() for metric in named]
        for scenario, metric in places:
            if scenario not in known or aim_of(metric) is None:
                raise InputError(f"causes.toml: {entry['title']}: there is no {metric} of {scenario!r} with an aim")
        found.append(Cause(entry["title"], entry["text"].strip(), tuple(places)))
    return found


def explained(known: Iterable[Cause]) -> Mapping[tuple[str, str], Cause]:
    """The cause for each scenario and metric."""
    return {place: cause for cause in known for place in cause.places}
