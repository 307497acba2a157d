"""What every metric means. The metrics themselves are declared in `bufferscope.metrics`, each beside its query.

In a name, `<port>` stands for a port with a rate (`r1>h2`), `<traffic>` for the name of a traffic entry and `<N>` for a
whole number from 0 to 100, written without leading zeros. In those of live measurements, `<phase>` stands for
`download`, `upload` or `both`, and `<direction>` for `up` or `down`. Everything is measured over the window from the
scenario's warm-up to its duration, both included. Of a test that sends probes before and after its load (`rrul` and the
others, and files of Flent), the window is only the time under load, and `idle.*` are the probes of the rest. Lost
probes and unfinished transfers count as longer than all others: a percentile that falls among them is *censored*. As a
number it is +inf; it is never silently left out. Percentiles interpolate linearly between order statistics. A few are
always computed, and any other can be requested by name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from bufferscope.base.attach import attached

PERCENT = "(0|[1-9][0-9]?|100)"
"""The values of `<N>`: each percentile has one spelling."""


@dataclass(frozen=True)
class Definition:
    """One metric, or one family of metrics that differ by port, traffic, phase or percentile."""

    name: str
    """The name, with `<port>`, `<traffic>`, `<phase>`, `<direction>` or `<N>` for what differs within a family."""
    unit: str
    """The unit of its values."""
    meaning: str
    """What it is, in one sentence."""
    source: str
    """The tables and columns of the records from which it is computed."""

    @property
    def table(self) -> str:
        """The main table of the records that it is computed from."""
        return self.tables[0]

    @property
    def tables(self) -> list[str]:
        """The tables that the metric needs: the main one, and `capacity` if its source names it."""
        main, *others = (part.strip().partition(":")[0] for part in self.source.split(";"))
        return [main, *(table for table in others if table == "capacity")]

    def fits(self, name: str) -> bool:
        """Whether this definition covers a name.

        Parameters
        ----------
        name
            The name of a metric.

        Returns
        -------
        bool
            Whether it does.
        """
        return parts(self, name) is not None

    def names(self, ports: Iterable[str], traffic: Iterable[str], phases: Iterable[str] = ()) -> list[str]:
        """The names that this definition covers in a run.

        Parameters
        ----------
        ports
            The run's ports, as in `r1>h2`.
        traffic
            The names of its traffic.
        phases
            The phases under load of a live measurement.

        Returns
        -------
        list of str
            Names of metrics.
        """
        if self.name.startswith("live."):
            own = [self.name.replace("<phase>", phase) for phase in phases]
            ways = ("up", "down") if "<direction>" in self.name else ("",)
            return list(dict.fromkeys(name.replace("<direction>", way) for name in own for way in ways))
        if "<port>" in self.name:
            return [self.name.replace("<port>", port) for port in ports]
        if "<traffic>" in self.name:
            return [self.name.replace("<traffic>", entry) for entry in traffic]
        return [self.name]


@cache
def definitions() -> Sequence[Definition]:
    """All metrics, in the order in which tables show them."""
    found: Sequence[Definition] = attached("metrics.definitions")()
    return found


@lru_cache(maxsize=4096)
def definition(name: str) -> Definition | None:
    """The definition of a metric. It is cached, because all runs have the same names.

    Parameters
    ----------
    name
        The metric's name.

    Returns
    -------
    Definition or None
        None if no metric has this name.
    """
    return next((known for known in definitions() if known.fits(name)), None)


def parts(definition: Definition, name: str) -> dict[str, str] | None:
    """The port, traffic, phase, direction or percentile (`N`) in a name that a definition covers; None for others."""
    found = re.fullmatch(_pattern(definition.name), name)
    return found.groupdict() if found else None


@cache
def _pattern(name: str) -> str:
    pattern = re.escape(name).replace("<N>", f"(?P<N>{PERCENT})")
    pattern = pattern.replace("<phase>", "(?P<phase>download|upload|both)")
    pattern = pattern.replace("<direction>", "(?P<direction>up|down)")
    return re.sub("<(port|traffic)>", r"(?P<\1>.+)", pattern)
