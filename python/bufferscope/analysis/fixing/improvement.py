"""Whether a change made things better: the same numbers before and after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bufferscope.analysis import live as words
from bufferscope.analysis.fixing.located import NAMES, LocatedQueue, added_p95_ns
from bufferscope.analysis.live import TextTable
from bufferscope.store.live import LiveMeasurement
from bufferscope.store.verdict import Direction, PhaseVerdict

SHORTER = 0.7
"""A change is kept if at most this part of the added delay remains ..."""
GOODPUT = 0.85
"""... and at least this part of the goodput."""


@dataclass(frozen=True)
class Compared:
    """One direction before and after a change."""

    direction: Direction
    before: PhaseVerdict
    after: PhaseVerdict | None
    """The same phase of the later measurement; None if it was not measured."""

    @property
    def is_better(self) -> bool:
        """Whether the delay is clearly shorter, and the goodput at most a little lower."""
        if self.after is None:
            return False
        delays = [added_p95_ns(phase, self.direction) for phase in (self.before, self.after)]
        rates = [goodput_bps(phase, self.direction) for phase in (self.before, self.after)]
        if None in delays or None in rates or self.after["outcome"]["kind"] in ("cannot_tell", "path_changed"):
            return False
        return delays[1] <= SHORTER * delays[0] and rates[1] >= GOODPUT * rates[0]  # type: ignore[operator]


def compared(queues: Sequence[LocatedQueue], after: LiveMeasurement) -> tuple[Compared, ...]:
    """Each cured direction, before and after."""
    return tuple(
        Compared(queue.direction, queue.phase, words.of_phase(after["verdict"], queue.phase["kind"]))
        for queue in queues
    )


def is_better(found: Sequence[Compared]) -> bool:
    """Whether every cured direction is better."""
    return bool(found) and all(each.is_better for each in found)


def goodput_bps(phase: PhaseVerdict, direction: Direction) -> int | None:
    """The mean goodput of a direction in a phase."""
    own = words.in_direction(phase, direction)
    return own["goodput"]["mean_bps"] if own and own["goodput"] else None


def table(found: Sequence[Compared]) -> TextTable:
    """Before and after side by side."""
    rows = [row for each in found for row in _rows(each)]
    return TextTable("Before and after", ("", "Before", "After"), tuple(rows))


def _rows(each: Compared) -> Iterator[tuple[str, str, str]]:
    name = NAMES[each.direction].capitalize()
    phases = (each.before, each.after)
    delays = ["-" if phase is None else _ms(added_p95_ns(phase, each.direction)) for phase in phases]
    rates = ["-" if phase is None else words.mbit(goodput_bps(phase, each.direction)) for phase in phases]
    grades = ["-" if phase is None else phase["grade"] or "-" for phase in phases]
    yield f"{name}: added delay p95 (ms)", delays[0], delays[1]
    yield f"{name}: goodput (Mbit/s)", rates[0], rates[1]
    yield f"{name}: grade", grades[0], grades[1]


def _ms(time_ns: float | None) -> str:
    if time_ns is None:
        return words.UNKNOWN
    return "∞" if time_ns == float("inf") else words.ms(round(time_ns))
