"""The smallest queue that keeps the goodput, found by simulations with several seeds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bufferscope.stats.estimate import Estimate, estimate
from bufferscope.studies.sizing import load
from bufferscope.studies.sizing.line import SizedLine
from bufferscope.studies.sizing.settings import AQMS, settings

if TYPE_CHECKING:
    from bufferscope.model.experiment import Experiment
    from bufferscope.results.result import Result
    from bufferscope.store.run import Run

Carry = Callable[["Experiment"], "Result"]
"""Runs every point of an experiment, with every seed."""
Queues = Mapping[str, Mapping[str, object]]
"""Queues by name, as an experiment file writes them."""
Trying = Callable[[Queues], "dict[str, MeasuredQueue]"]
"""Tries every queue on the line."""


@dataclass(frozen=True)
class MeasuredQueue:
    """A queue with what it did; each value is the mean of the seeds with its uncertainty."""

    name: str
    """The queue's name."""
    limit_packets: int | None
    """Of tail drop; None for an active queue management."""
    goodput_mbit: Estimate
    """Of all flows together."""
    rtt_p95_ms: Estimate
    """Of the pings; infinite if losses hide it."""
    sojourn_p95_ms: Estimate
    """Of the packets that the queue let through."""


@dataclass(frozen=True)
class SimulatedSizing:
    """What the simulations say."""

    smallest: MeasuredQueue
    """The smallest tail drop found that keeps the goodput; the size one packet below does not, if there is one."""
    below: MeasuredQueue | None
    """That size; None if the smallest is a single packet."""
    longest: MeasuredQueue
    """The very long queue whose goodput is 100 %."""
    sizes: tuple[MeasuredQueue, ...]
    """All sizes that were tried, in order."""
    managed: tuple[MeasuredQueue, ...]
    """The active queue managements on the same load."""
    runs: int
    """The number of runs that were made."""

    def share(self, measured: MeasuredQueue) -> float:
        """The part of the goodput of the very long queue that a queue kept.

        Parameters
        ----------
        measured
            One of the queues that were tried.

        Returns
        -------
        float
            1 if it kept all.
        """
        return measured.goodput_mbit.mean / self.longest.goodput_mbit.mean


def search(line: SizedLine, trying: Trying) -> SimulatedSizing:
    """Double the queue until it keeps the goodput, then halve the interval in which the smallest one is.

    Goodput need not grow with every packet, so a smaller size than the one found may happen to keep it, too: but not
    the one just below it, which was run.
    """
    longest = load.longest(line)
    doubled = [1 << power for power in range(longest.bit_length())]
    queues: dict[str, Mapping[str, object]] = {_name(size): load.tail_drop(size) for size in doubled}
    first = trying(queues | {each.name: each.queue for each in settings(line)})
    tried = {size: first[_name(size)] for size in doubled}
    runs = sum(each.goodput_mbit.n for each in first.values())
    needed = line.target * tried[longest].goodput_mbit.mean

    def keeps(size: int) -> bool:
        return tried[size].goodput_mbit.mean >= needed

    high = next(size for size in doubled if keeps(size))
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        tried[middle] = trying({_name(middle): load.tail_drop(middle)})[_name(middle)]
        runs += tried[middle].goodput_mbit.n
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return SimulatedSizing(
        smallest=tried[high],
        below=tried.get(high - 1),
        longest=tried[longest],
        sizes=tuple(tried[size] for size in sorted(tried)),
        managed=tuple(first[name] for name in AQMS),
        runs=runs,
    )


def _name(packets: int) -> str:
    return f"pfifo {packets}"


def carried(line: SizedLine, carry: Carry, queues: Queues) -> dict[str, MeasuredQueue]:
    """Every queue with what it did, by name."""
    result = carry(load.experiment(line, queues))
    found = {}
    for name, queue in queues.items():
        limit = int(str(queue["limit"]).removesuffix("p")) if queue["qdisc"] == "pfifo" else None
        found[name] = _measured(name, limit, [run for run in result.runs if run.point[load.KEY] == name])
    return found


def _measured(name: str, limit: int | None, runs: "list[Run]") -> MeasuredQueue:
    def of(metric: str) -> Estimate:
        return estimate([run.metrics.get(metric, float("inf")) for run in runs])

    goodput = estimate([run.metrics.get("goodput.load_mbit", 0.0) for run in runs])
    return MeasuredQueue(name, limit, goodput, of("rtt.p95_ms"), of(f"sojourn.{load.PORT}.p95_ms"))
