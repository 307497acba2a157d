"""The names of the metrics that a scenario can have, so that a wrong name is refused before anything runs."""

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from bufferscope.model import metric_definitions
from bufferscope.model.metric_definitions import PERCENT, Definition
from bufferscope.model.network import groups, ports, traffic_named
from bufferscope.model.scenario import Scenario

PHASES = ("download", "upload", "both")
"""The phases with a load of a live measurement."""
PERCENTILE = re.compile(rf"\.p{PERCENT}_(?=[a-z]+$)")
"""The percentile in a metric's name: at the end, before the unit."""


def names(scenario: Scenario, definitions: Iterable[Definition] | None = None) -> list[str]:
    """The names that metrics of a scenario can have, measured or not; `p<N>` is any percentile.

    Parameters
    ----------
    scenario
        The resolved scenario, as `Run.scenario`.
    definitions
        The metrics in question. Default: all.

    Returns
    -------
    list of str
        Names of metrics.
    """
    rated = [port.name for port in ports(scenario).values() if port.rate]
    traffic = [*(entry["name"] for entry in traffic_named(scenario)), *groups(scenario)]
    phases = live_phases(scenario)
    every = metric_definitions.definitions() if definitions is None else definitions
    return [name for definition in every for name in definition.names(rated, traffic, phases)]


def live_phases(scenario: Scenario) -> list[str]:
    """The phases with a load of a live measurement: its traffic is named after them, and its queues are not known."""
    if any(not port.is_unknown for port in ports(scenario).values()):
        return []
    named = {entry["name"].partition(".")[0] for entry in traffic_named(scenario, "tcp")}
    return [phase for phase in PHASES if phase in named]


def exists(scenario: Scenario, name: str) -> bool:
    """Whether a metric of this scenario can have this name."""
    return "<" not in name and not {name, any_percentile(name)}.isdisjoint(names(scenario))


def any_percentile(name: str) -> str:
    """The name with `p<N>` in place of its percentile, if it has one."""
    return PERCENTILE.sub(".p<N>_", name)


def closest(scenario: Scenario, name: str) -> list[str]:
    """A few names that may have been meant by `name`."""
    return list(_closest(name, tuple(names(scenario))))


@lru_cache(maxsize=8)
def _closest(name: str, known: Sequence[str]) -> Sequence[str]:
    """Cached, because the runs of a sweep have mostly the same names."""
    return difflib.get_close_matches(name, known, n=4, cutoff=0.5) or known[:4]
