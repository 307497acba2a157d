"""The probes of programs that number them, as ping and fping do: this separates several runs of one program in a file.

Programs begin to count anew when they are started again, and ICMP's numbers have 16 bits. So a number that comes again,
or one that lies further back than packets overtake one another, begins another session.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from bufferscope.interop.importing.result import Probe, with_missing
from bufferscope.interop.importing.values import NANOSECONDS

ROUND = 1 << 16
"""ICMP's sequence numbers have 16 bits."""
MOST_OVERTAKEN = 1000
"""No packet arrives after so many that were sent later, and no more are lost where the numbers turn over."""
LEAST_INTERVAL_NS = 2_000_000
"""Of ping (iputils), except with `-f`, which prints no numbers."""
LEAST_TOOK_NS = 500_000


@dataclass(slots=True)
class ProbeResult:
    """A line about a probe."""

    rtt_ns: int | None
    """None: it was lost, or the line does not say how long it took."""
    line: int
    """Which of the file's lines about probes it is, from 0 on."""


@dataclass(slots=True)
class Session:
    """What one run of a program says about its probes, by their number; 16 bits go on after the highest."""

    host: str = ""
    size: int | None = None
    first: int | None = None
    """The program's first number; None if it is not known: then the smallest in the file is the first."""
    answers: dict[int, ProbeResult] = field(default_factory=dict)
    lost: dict[int, ProbeResult] = field(default_factory=dict)
    """The probes that lines call lost; an answer may still come."""
    untimed: set[int] = field(default_factory=set)
    """The probes that were answered without a round trip."""
    sent: int | None = None
    received: int | None = None
    took_ns: int | None = None
    """What the program says at its end."""
    _last: int | None = None

    def number(self, seq: int, rtt_ns: int | None, *, turns: bool = True) -> int | None:
        """The number of a probe in this session, continued after 16 bits if they `turn`; None: it is of another one."""
        if self._last is None:
            return seq
        number = seq + ROUND * max(0, round((self._last - seq) / ROUND)) if turns else seq
        back = self._last - number
        if back < -MOST_OVERTAKEN and number != seq + self._last // ROUND * ROUND:
            return None
        is_late = back <= MOST_OVERTAKEN and back * LEAST_INTERVAL_NS <= (rtt_ns or 0)
        return number if back < 0 or is_late or (rtt_ns is None and back <= MOST_OVERTAKEN) else None

    def saw(self, number: int) -> None:
        self._last = number if self._last is None else max(self._last, number)

    @property
    def numbers(self) -> list[int]:
        """All that the lines mention."""
        return [*self.answers, *self.lost, *self.untimed]

    @property
    def is_cut(self) -> bool:
        """Whether the program counted more answers than the file has."""
        return self.received is not None and self.received > len(self.answers) + len(self.untimed)


def probes(sessions: Sequence[Session], times: Sequence[int] | None, interval_ns: int) -> list[Probe]:
    """The probes of all sessions to one target, with numbers that go on from session to session.

    `times` are those of the lines. Without them, probes are sent at equal intervals: those that a session implies at
    its end, otherwise `interval_ns`, and one session follows the other.
    """
    found: list[Probe] = []
    for session in sessions:
        begin_ns = found[-1].sent_ns + interval_ns if found else 0
        shift = found[-1].seq + 1 if found else None
        made = list(_of(session, times, begin_ns, interval_ns))
        if made and shift is not None:
            shift -= made[0].seq
        found += [replace(probe, seq=probe.seq + shift) for probe in made] if shift else made
    return found


def _of(session: Session, times: Sequence[int] | None, begin_ns: int, interval_ns: int) -> Iterator[Probe]:
    step_ns = interval_of(session) or interval_ns
    numbers = session.numbers
    first = min([*numbers, *([] if session.first is None else [session.first])], default=0)
    last = max(
        [*numbers, *([first + session.sent - 1] if session.first is not None and session.sent else [])], default=-1
    )
    known = session.answers or session.lost
    made = [
        Probe(
            number,
            begin_ns + (number - first) * step_ns if times is None else times[each.line] - (each.rtt_ns or 0),
            each.rtt_ns,
        )
        for number, each in sorted(known.items())
    ]
    if session.is_cut:
        yield from made
        return
    yield from (probe for probe in with_missing(made, first, last, step_ns) if probe.seq not in session.untimed)


def interval_of(session: Session) -> int | None:
    """The time between two probes, as a session's last line implies; that counts whole milliseconds."""
    if session.took_ns is None or session.sent is None or session.sent < 2:
        return None
    return max(session.took_ns, LEAST_TOOK_NS) // (session.sent - 1)


def is_stopped(session: Session) -> bool:
    """Whether the last probes had less time to be answered than others needed, if the program then ended."""
    step_ns, answers = interval_of(session), session.answers
    if step_ns is None or not answers or session.first is None or session.sent is None:
        return False
    unanswered = session.first + session.sent - 1 - max(answers)
    longest_ns = max(each.rtt_ns or 0 for each in answers.values())
    return unanswered > 0 and unanswered * step_ns <= longest_ns


def smoothed(found: Sequence[Probe]) -> list[Probe]:
    """Probes whose timestamps are whole seconds, at equal intervals if there are several in a second."""
    if len(found) < 3:
        return list(found)
    begin, end = found[0], found[-1]
    step_ns = (end.sent_ns - begin.sent_ns) / (len(found) - 1)
    if step_ns >= NANOSECONDS or any(b.sent_ns - a.sent_ns > 10 * NANOSECONDS for a, b in pairwise(found)):
        return list(found)
    return [replace(probe, sent_ns=begin.sent_ns + round(index * step_ns)) for index, probe in enumerate(found)]
