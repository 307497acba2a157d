"""What `fping` prints: `-C N`, also with `-q`, and `-l` or `-c N`, with `-D` and without.

Each target is an entry of its own; a log may begin anywhere, so the numbers begin at the smallest in the file. With
`-D`, a timestamp is when the line was printed: the answer had then just arrived. Without, probes are taken to have
been sent at fping's default interval (`-p`), a second.
"""

import re
from collections.abc import Sequence
from typing import Any

from bufferscope.interop.external_runs import traffic_name
from bufferscope.interop.importing import budget, sessions, stamps
from bufferscope.interop.importing.content import Unusable, lines
from bufferscope.interop.importing.result import Probe, Reading
from bufferscope.interop.importing.sessions import ProbeResult, Session
from bufferscope.interop.importing.stamps import Epoch, Stamp
from bufferscope.interop.importing.values import NANOSECONDS, milliseconds

INTERVAL_NS = NANOSECONDS
MOST_TARGETS = 1000
FIRST_LINES = 20_000
_TARGET = r"(?P<target>\S{1,300}(?: \([^\s()]{1,100}\))?) +: "
_PROBE = re.compile(
    _TARGET + r"\[(?P<seq>\d{1,9})\], (?:\d+ bytes, (?P<rtt>\d{1,9}(?:\.\d{1,6})?) ms|timed out|(?P<other>.*))"
)
_DOUBLE = re.compile(_TARGET + r"duplicate for \[\d{1,9}\],")
_SUMMARY = re.compile(_TARGET.removesuffix(" ") + r"(?P<values>(?: (?:-|\d{1,9}(?:\.\d{1,6})?))+)$")
_BEGIN_OF_SUMMARY = re.compile(_SUMMARY.pattern.removesuffix("$") + r" ?[\d.]*$")
"""A line of `-C` has a number for each probe, so it may go on behind what is looked at."""
_COUNTS = re.compile(_TARGET + r"xmt/rcv/%(?:loss|return) = (?P<sent>\d{1,9})/(?P<received>\d{1,9})/")


def recognises(content: Any) -> bool:
    """Whether text comes from fping."""
    texts = (stamps.split(line)[1] for line in content[:FIRST_LINES].split("\n"))
    return any(form.match(text) for text in texts for form in (_PROBE, _BEGIN_OF_SUMMARY, _COUNTS))


def read(content: Any) -> Reading:
    """The answers, and what is missing between them, as probes; raises `Unusable`."""
    found = _FpingLines()
    for line in lines(content):
        found.take(line.rstrip())
        if len(found.targets) > MOST_TARGETS:
            raise Unusable(f"found more than {MOST_TARGETS} targets; allowed: at most that")
    return _reading(found)


class _FpingLines:
    """What the lines said so far."""

    def __init__(self) -> None:
        self._budget = budget.current()
        self.targets: dict[str, list[Session]] = {}
        self.summaries: dict[str, list[int | None]] = {}
        """The round trips that `-C` prints at the end, of all runs one after the other."""
        self.counts: dict[str, tuple[int, int]] = {}
        """What `-c` prints at the end: sent and received."""
        self.stamps: list[Stamp] = []
        self.unstamped = self.doubles = self.unread = 0

    def take(self, line: str) -> None:
        """Read a line."""
        stamp, text = stamps.split(line)
        if probe := _PROBE.match(text):
            self._probe(probe, stamp)
        elif _DOUBLE.match(text):
            self.doubles += 1
        elif counts := _COUNTS.match(text):
            self.targets.setdefault(counts["target"], [])
            self.counts[counts["target"]] = int(counts["sent"]), int(counts["received"])
        elif summary := _SUMMARY.match(text):
            words = summary["values"].split()
            self._budget.records(len(words))
            self.targets.setdefault(summary["target"], [])
            rtts = [None if word == "-" else milliseconds(float(word)) for word in words]
            self.summaries.setdefault(summary["target"], []).extend(rtts)

    def _probe(self, line: re.Match[str], stamp: Stamp | None) -> None:
        self._budget.records(1)
        own = self.targets.setdefault(line["target"], [])
        if line["other"] is not None:
            self.unread += 1
        if stamp:
            self.stamps.append(stamp)
        else:
            self.unstamped += 1
        rtt_ns = milliseconds(float(line["rtt"])) if line["rtt"] else None
        seq = int(line["seq"])
        number = own[-1].number(seq, rtt_ns, turns=False) if own else None
        if number is None or number in own[-1].answers or (rtt_ns is None and number in own[-1].lost):
            own.append(Session(line["target"]))
        session, seen = own[-1], ProbeResult(rtt_ns, len(self.stamps) - 1)
        (session.lost if rtt_ns is None else session.answers)[seq] = seen
        session.saw(seq)


def _reading(found: _FpingLines) -> Reading:
    times = stamps.on_one_axis(found.stamps) if found.stamps and not found.unstamped else None
    clock = times is not None and found.stamps[0].kind is Epoch.DATE
    names = list(found.targets)
    reading = Reading("fping", title=f"fping {', '.join(names)[:150]}", clock=clock)
    _check(found)
    for target, own in found.targets.items():
        _complete(found, target)
        if own:
            probes = sessions.probes(own, times, INTERVAL_NS)
        else:
            begin_ns = min(times, default=0) if times else 0
            probes = _of_summary(found, target, begin_ns)
        if probes:
            reading.ping(reading.new_name(traffic_name(target) if len(names) > 1 else "ping"), probes)
    reading.warnings += _warnings(found, has_times=times is not None)
    return reading


def _complete(found: _FpingLines, target: str) -> None:
    """Say how many probes a single run sent, if the file has all of its answers: a lost one may have no line."""
    own, rtts = found.targets[target], found.summaries.get(target)
    counted = (len(rtts), _answers(rtts)) if rtts else found.counts.get(target)
    if counted and len(own) == 1 and counted[1] == len(own[0].answers) and max(own[0].numbers) < counted[0]:
        own[0].first, own[0].sent = 0, counted[0]


def _of_summary(found: _FpingLines, target: str, begin_ns: int) -> list[Probe]:
    """The probes of a target with nothing but a line at the end: fping 4 prints no lines of lost ones."""
    rtts = found.summaries.get(target)
    if rtts is None:
        sent, received = found.counts[target]
        budget.current().records(0 if received else sent)
        rtts = [] if received else [None] * sent
    return [Probe(seq, begin_ns + seq * INTERVAL_NS, rtt_ns) for seq, rtt_ns in enumerate(rtts)]


def _check(found: _FpingLines) -> None:
    """Raise `Unusable` if there were answers, but no round trips."""
    only_counted = [
        target
        for target, own in found.targets.items()
        if not own and target not in found.summaries and found.counts[target][1]
    ]
    if only_counted:
        raise Unusable(
            f"fping counted the answers of {only_counted[0]:.80}, but printed no round trips; use -C N instead of "
            "-c N -q"
        )


def _warnings(found: _FpingLines, *, has_times: bool) -> list[str]:
    made = []
    if not has_times:
        made.append("no timestamps (fping -D): probes are taken to have been sent every second")
    for target, own in found.targets.items():
        answers = sum(len(session.answers) for session in own)
        received = max(found.counts.get(target, (0, 0))[1], _answers(found.summaries.get(target, ())))
        if own and answers < received:
            made.append(
                f"fping received {received} answers of {target}, but the file has lines of {answers}: the others are "
                "left out, or count as lost between lines"
            )
        if len(own) > 1:
            made.append(f"the numbers of {target} start again: {len(own)} runs of fping follow one another")
    counts = {
        "duplicates, which are left out": found.doubles,
        "lines about probes that are not understood, which count as lost": found.unread,
    }
    return made + [f"{what}: {count}" for what, count in counts.items() if count]


def _answers(rtts: Sequence[int | None]) -> int:
    return sum(rtt_ns is not None for rtt_ns in rtts)
