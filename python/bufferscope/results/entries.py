"""The expectations that `run.json` keeps, and those of several runs together."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bufferscope.model.expectations import BandComparison, ExpectationEntry
from bufferscope.results.verdicts import Expectation

if TYPE_CHECKING:
    from bufferscope.store.run import Run


def concerning(entries: Sequence[ExpectationEntry], position: int) -> list[ExpectationEntry]:
    """The expectations that a run's `run.json` keeps: those about its point, with their numbers from 1.

    Each keeps only the comparisons in which the point takes part. So the space for a sweep's runs is proportional to
    their number and not to its square. `gathered` puts the comparisons together again.
    """
    kept: list[ExpectationEntry] = []
    for number, entry in enumerate(entries, start=1):
        comparisons = [comparison for comparison in entry["comparisons"] if position in positions(comparison)]
        if comparisons or entry["not_applicable"]:
            kept.append({**entry, "number": number, "comparisons": comparisons})
    return kept


def positions(comparison: BandComparison) -> Iterator[int | None]:
    """The points that take part in a comparison: those measured, and those that show the cause of a difference."""
    for position in (comparison, comparison.get("shown_by")):
        if position is not None:
            yield from (position["point"], position["relative_to"])


def gathered(runs: Sequence["Run"]) -> list[ExpectationEntry]:
    """The expectations about any of the runs' points, in the file's order, with all their comparisons."""
    entries: dict[str, ExpectationEntry] = {}
    comparisons: dict[str, dict[str, BandComparison]] = {}
    last: Sequence[ExpectationEntry] | None = None
    for run in runs:
        own = run.meta["expectations"]
        if own == last:  # as in all members of a population
            continue
        last = own
        for entry in own:
            words = json.dumps({**entry, "comparisons": []}, sort_keys=True)
            entries.setdefault(words, entry)
            found = comparisons.setdefault(words, {})
            found |= {json.dumps(comparison, sort_keys=True): comparison for comparison in entry["comparisons"]}
    whole: list[ExpectationEntry] = [
        {**entry, "comparisons": sorted(comparisons[words].values(), key=lambda comparison: comparison["point"])}
        for words, entry in entries.items()
    ]
    return sorted(whole, key=lambda entry: entry.get("number", 0))


def expectation_of(entry: ExpectationEntry) -> Expectation:
    """An expectation from its JSON form."""
    return Expectation(
        metric=entry["metric"],
        says=entry["says"],
        band=_interval(entry["band"]),
        group=entry.get("group"),
        share_in=_interval(ends) if (ends := entry.get("share_in")) is not None else None,
        where=entry["where"],
        relative_to=entry["relative_to"],
        differs=entry["differs"],
        shown_by=entry.get("shown_by"),
        figure=entry.get("figure"),
    )


def _interval(ends: Sequence[float | None]) -> tuple[float, float]:
    low, high = ends
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)
