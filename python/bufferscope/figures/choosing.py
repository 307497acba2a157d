"""Choose the figures of a result: those that its experiment names, or else those that fit its traffic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bufferscope.figures.declaring import declaration
from bufferscope.model.figure_names import NAMES, FigureName
from bufferscope.model.recorded import unrecorded
from bufferscope.model.scenario import Scenario

if TYPE_CHECKING:
    from bufferscope.metrics.records import RunRecords


def chosen(runs: Sequence["RunRecords"]) -> tuple[FigureName, ...]:
    """The figures that the runs' experiments name, each once; if one names none, those that fit its traffic."""
    found: dict[FigureName, None] = {}
    for run in runs:
        named = [name for name in run.meta["document"].get("figures") or () if name in NAMES]
        found |= dict.fromkeys(named or fitting(run.scenario))
    return tuple(found)


def fitting(scenario: Scenario) -> tuple[FigureName, ...]:
    """The figures that show something of a scenario's traffic, as they are declared.

    A port with a rate has a queue, a ping or irtt has round-trip times, a TCP connection has a window, traffic that
    carries data has a goodput, and transfers with an end take a certain time. Figures of tables that are not recorded
    are left out.
    """
    empty = unrecorded(scenario)
    return tuple(
        name
        for name in NAMES
        if (known := declaration(name)).fits(scenario) and not set(known.needs).intersection(empty)
    )
