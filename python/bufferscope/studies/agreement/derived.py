"""What engines are compared by besides the metrics: losses and marks of the whole network, and what each flow gets."""

from collections.abc import Iterator, Mapping, Sequence

from bufferscope.metrics.batch import Batch
from bufferscope.metrics.goodput import gains
from bufferscope.metrics.measuring import of_each
from bufferscope.metrics.records import RunRecords
from bufferscope.model.metric_values import Metrics
from bufferscope.model.network import CARRYING, traffic_named

TOTALS = {"drops.": "drops.total", "marks.": "marks.total"}
"""Sums over all ports, by the prefix of the ports' metrics."""
SHARE = "share."
"""The prefix of the shares of the goodput."""


def measured(runs: Sequence[RunRecords]) -> Iterator[Metrics]:
    """For each run its metrics, and besides these the totals and shares.

    - `drops.total` and `marks.total` in packets, all ports together, where a port counts them
    - `share.<traffic>_percent`: the share of the goodput that a traffic entry has, if several have one
    - `share.<traffic>.largest_percent` and `share.<traffic>.smallest_percent`: the shares of that flow of an entry with
      several bulk flows which has the most, and of the one which has the least. Equal flows change ranks from seed to
      seed, so the shares are named by their rank, not by the flow's number.
    """
    for run, metrics in zip(runs, of_each(runs), strict=True):
        yield Metrics({**metrics, **_totals(metrics), **_shares(run)})


def _totals(metrics: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in metrics.items():
        for prefix, total in TOTALS.items():
            if name.startswith(prefix):
                found[total] = found.get(total, 0) + value
    return found


def _shares(run: RunRecords) -> dict[str, float]:
    """The shares of the goodput, by traffic entry and by the rank of its flows."""
    rows = gains(Batch([run])).collect(engine="in-memory")
    total = rows["delivered_bytes"].sum()
    if not total:
        return {}
    entries = traffic_named(run.scenario, *CARRYING)
    found = {}
    for entry in entries:
        flows = rows.filter(traffic=entry["name"])["delivered_bytes"].to_list()
        if len(entries) > 1:
            found[f"{SHARE}{entry['name']}_percent"] = 100 * sum(flows) / total
        if entry["kind"] == "tcp" and entry["flows"] > 1 and entry.get("transfers", 1) == 1:
            silent = [0] * (entry["flows"] - len(flows))
            found[f"{SHARE}{entry['name']}.largest_percent"] = 100 * max([*flows, *silent]) / total
            found[f"{SHARE}{entry['name']}.smallest_percent"] = 100 * min([*flows, *silent]) / total
    return found
