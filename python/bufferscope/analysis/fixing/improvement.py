"""Whether a change made things better: the same numbers before and after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bufferscope.analysis import live as words
from bufferscope.analysis.fixing.located import NAMES, LocatedQueue, added_p95_ns
from bufferscope.analysis.live import TextTable
from bufferscope.store.live import LiveMeasurement
from bufferscope.store.verdict import Direction, PhaseVerdict, Place

SHORTER = 0.7
"""A change is kept if at most this part of the added delay remains ..."""
GOODPUT = 0.85
"""... and at least this part of the goodput."""
LOW_NS = 5_000_000
"""A rate is raised as long as the added delay stays below this ..."""
LONGER = 1.25
"""... or at most this many times as long as with the first rate ..."""
SEND_BUFFER = ("client", "send_buffer")
"""The stage of the verdict in which data waits in the sending program's own buffer."""
MORE = 1.01
"""... and any goodput grows at least by this factor."""


@dataclass(frozen=True)
class Compared:
    """One direction before and after a change."""

    direction: Direction
    before: PhaseVerdict
    after: PhaseVerdict | None
    """The same phase of the later measurement; None if it was not measured."""
    place: Place | None = None
    """Where the queue was before."""

    def delay_ns(self, phase: PhaseVerdict | None) -> float | None:
        """The delay that a cure has to shorten: what load adds (p95), or what its own data waits in the send buffer."""
        if phase is None:
            return None
        if self.place == "client_send_buffer":
            own = [each["delay"] for each in phase["stages"] if (each["end"], each["stage"]) == SEND_BUFFER]
            return next((each["p95_ns"] for each in own), None)
        return added_p95_ns(phase, self.direction)

    @property
    def is_better(self) -> bool:
        """Whether the delay is clearly shorter, and the goodput at most a little lower."""
        if self.after is None:
            return False
        delays = [self.delay_ns(phase) for phase in (self.before, self.after)]
        rates = [goodput_bps(phase, self.direction) for phase in (self.before, self.after)]
        if None in delays or None in rates or self.after["outcome"]["kind"] in ("cannot_tell", "path_changed"):
            return False
        return delays[1] <= SHORTER * delays[0] and rates[1] >= GOODPUT * rates[0]  # type: ignore[operator]


def compared(queues: Sequence[LocatedQueue], after: LiveMeasurement) -> tuple[Compared, ...]:
    """Each cured direction, before and after."""
    return tuple(
        Compared(queue.direction, queue.phase, words.of_phase(after["verdict"], queue.phase["kind"]), queue.place)
        for queue in queues
    )


def is_better(found: Sequence[Compared]) -> bool:
    """Whether every cured direction is better."""
    return bool(found) and all(each.is_better for each in found)


def is_worth_raising(first: Sequence[Compared], last: Sequence[Compared], now: Sequence[Compared]) -> bool:
    """Whether a higher rate keeps the delay short and gains goodput; `first` and `last` are with the rates before."""
    gains = False
    for one, other, found in zip(first, last, now, strict=True):
        delays = [each.delay_ns(each.after) for each in (one, found)]
        rates = [each.after and goodput_bps(each.after, each.direction) for each in (other, found)]
        if None in delays or None in rates or delays[1] > max(LOW_NS, LONGER * delays[0]):  # type: ignore[operator]
            return False
        gains = gains or rates[1] >= MORE * rates[0]  # type: ignore[operator]
    return gains


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
    delays = ["-" if phase is None else _ms(each.delay_ns(phase)) for phase in phases]
    rates = ["-" if phase is None else words.mbit(goodput_bps(phase, each.direction)) for phase in phases]
    grades = ["-" if phase is None else phase["grade"] or "-" for phase in phases]
    yield f"{name}: added delay p95 (ms)", delays[0], delays[1]
    yield f"{name}: goodput (Mbit/s)", rates[0], rates[1]
    yield f"{name}: grade", grades[0], grades[1]


def _ms(time_ns: float | None) -> str:
    if time_ns is None:
        return words.UNKNOWN
    return "∞" if time_ns == float("inf") else words.ms(round(time_ns))
