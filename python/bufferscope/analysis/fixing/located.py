"""The queues of a live measurement that can be cured, and the reasons if there are none.

The place of a queue is the one that the last sentence of the verdict relies on (`crates/verdict/src/cure.rs`): the most
probable one of an answer that names at most two, or else the line behind the router, if the answer has it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bufferscope.analysis import live as words
from bufferscope.store.live import LiveMeasurement
from bufferscope.store.verdict import Direction, LiveVerdict, Location, PhaseVerdict, Place, Where

GOOD = ("A+", "A")
"""With these grades, nothing needs a cure."""
FEW = 2
"""An answer with more locations does not say where the queue is."""
LINE: tuple[Place, ...] = ("router_uplink", "modem", "access_downlink")
"""The line between a router and its provider; a shaper on the router empties the queues at both ends of it."""
ALONE = {"down": "download", "up": "upload"}
"""The phase in which only this direction is loaded."""
NAMES: dict[Direction, str] = {"down": "download", "up": "upload"}


@dataclass(frozen=True)
class LocatedQueue:
    """A queue, and what is known of it."""

    direction: Direction
    """Whose packets wait in it: `up` or `down`."""
    place: Place
    """Where it is."""
    location: Location
    """The same with the link and the address."""
    answer: str
    """The answer of the verdict in words, with its probability."""
    phase: PhaseVerdict
    """The verdict about the phase that shows it best."""

    @property
    def added_p95_ns(self) -> float | None:
        """The 95th percentile of the delay that load adds in this direction, in ns; infinite among lost probes."""
        return added_p95_ns(self.phase, self.direction)


@dataclass(frozen=True)
class Located:
    """The queues to cure, and why others are not cured."""

    queues: tuple[LocatedQueue, ...]
    reasons: tuple[str, ...]
    """Sentences."""


def added_p95_ns(phase: PhaseVerdict, direction: Direction) -> float | None:
    """The delay that the load of a phase adds in a direction; if that is not known, what it adds to the round trip.

    It is infinite if the percentile falls among lost probes.
    """
    own = words.in_direction(phase, direction)
    for added in ([own["added"]] if own else []) + [phase["numbers"]["added"]]:
        if added["p95_ns"] is not None:
            return added["p95_ns"]
        if added["censored"]:
            return float("inf")
    return None


def located(live: LiveMeasurement) -> Located:
    """The queues of a measurement, at most one in each direction."""
    verdict = live["verdict"]
    if not verdict["phases"]:
        return Located((), ("Nothing was measured under load, so no queue is known. Run the test with a load.",))
    queues: list[LocatedQueue] = []
    reasons: list[str] = []
    for direction in NAMES:
        found = _queue(verdict, direction)
        if isinstance(found, LocatedQueue):
            queues.append(found)
        elif found:
            reasons.append(found)
    return Located(tuple(queues), (*reasons, *(() if queues or reasons else _outcomes(verdict))))


def _queue(verdict: LiveVerdict, direction: Direction) -> LocatedQueue | str | None:
    """The queue of a direction; a sentence if it needs no cure or has no known place; None if there is not one."""
    found = _phase(verdict, direction)
    if found is None:
        return None
    phase, where = found
    name = NAMES[direction].capitalize()
    if phase["grade"] in GOOD:
        added = words.percentile(phase["numbers"]["added"], "p95_ns")
        return f"{name}: nothing to do. The queue adds {added} ms (p95), grade {phase['grade']}."
    location = _main(where)
    if location is None:
        return (
            f"{name}: {where['answer']['text']}. A wrong cure costs speed and helps nothing, so there is no command. "
            "Repeat the "
            "test from a machine that is wired to the router."
        )
    return LocatedQueue(direction, location["place"], location, where["answer"]["text"], phase)


def _phase(verdict: LiveVerdict, direction: Direction) -> tuple[PhaseVerdict, Where] | None:
    """The phase that shows the queue of a direction best: the one that loads this direction alone."""
    all_ = [
        (phase, where)
        for phase in verdict["phases"]
        if phase["outcome"]["kind"] == "queue"
        for where in phase["where"]
        if where["direction"] == direction
    ]
    alone = [each for each in all_ if each[0]["kind"] == ALONE[direction]]
    return next(iter([*alone, *all_]), None)


def _main(where: Where) -> Location | None:
    answer = where["answer"]["locations"]
    if len(answer) <= FEW:
        likely = max(where["posterior"], key=lambda each: each["probability"], default=None)
        return likely["location"] if likely else next(iter(answer), None)
    return next((each for each in answer if each["place"] in LINE), None)


def _outcomes(verdict: LiveVerdict) -> Iterator[str]:
    """Why there is no queue to cure, phase by phase, and the advice of the verdict."""
    for phase in verdict["phases"]:
        name = words.PHASES[phase["kind"]].capitalize()
        outcome = phase["outcome"]
        yield f"{name}: {words.OUTCOMES[outcome['kind']]}: {outcome['text'].rstrip('.')}."
    if verdict["sentences"]:
        yield verdict["sentences"][-1]
