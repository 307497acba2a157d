"""What `ping` prints: of iputils in all of its languages, of BSD and macOS, of busybox, and of others like them.

Words are translated, so lines are read by their form: `WORD=NUMBER` for the sequence number, the TTL, and the round
trip with its unit, in this order. Whatever has a round trip or a TTL is an answer; any other line with a sequence
number is about a lost probe, as are gaps in the numbers. A timestamp is when a line was printed: the answer had then
just arrived. Without, probes are taken to have been sent at equal intervals: those that the last line implies
(`time 410ms`), otherwise a second.
"""

import re
from collections.abc import Sequence
from typing import Any

from bufferscope.interop.external_runs import traffic_name
from bufferscope.interop.importing import budget, sessions, stamps
from bufferscope.interop.importing.content import Unusable, lines
from bufferscope.interop.importing.result import Reading
from bufferscope.interop.importing.sessions import ProbeResult, Session
from bufferscope.interop.importing.stamps import Epoch, Stamp
from bufferscope.interop.importing.values import NANOSECONDS, milliseconds

DEFAULT_INTERVAL_NS = NANOSECONDS
LONGEST_LINE = 500
"""No line of ping is longer."""
FIRST_LINES = 4000
NPING = "Starting Nping "
"""How nping begins, whose lines resemble those of ping."""
MOST_HOSTS = 1000
BELOW = 0.5
"""The part of its bound that is taken for a round trip of `<1 ms`, and of `0 ms`, which has no fraction."""
_SEQ = r"(?:icmp?_(?:seq|req|sql)|seq|po\S{1,3}ad\S{1,3})"
_NUMBERED = re.compile(rf"\b{_SEQ} ?= ?(?P<seq>\d{{1,9}})(?!\d)(?P<rest>.*)")
_ANSWERED = re.compile(r"^\d{1,6} |\b(?:ttl|hlim|hops?) ?=", re.IGNORECASE)
_SEQUENCE = re.compile(rf"\b{_SEQ}[= ]{{1,2}}(\d{{1,9}})(?!\d)")
_VALUE = re.compile(
    r"(?P<word>[^\s=<(]{1,40}) ?(?P<sign>[=<]) ?(?P<value>\d{1,9}(?:[.,]\d{0,6})?)"
    r"\s?(?P<unit>[^\s\d()\[\]=<,;:.]{1,12})(?![^\s()\[\],;:.])(?! ?[=<])"
)
_NO_TIMES = ("ttl", "hlim", "hop", "id", "mtu", "seq", "win", "len")
_HEADER = re.compile(r"^(?:PING6?|ПІНГ)\b")
_SIZE = re.compile(r"(?:\)|\s|^)(\d{1,5}) ?\(\d+\)|\b(\d{1,5}) (?:data\b|[^\W\d]+(?: \S+)?)")
_FROM_0 = re.compile(r"^PING \S+?: +\(?\d|\): \d|^PING6\(")
"""The first lines of BSD, macOS, busybox, AIX and Solaris, whose numbers begin at 0."""
_ADDRESS = re.compile(r"\(([0-9a-fA-F.:%\w]{2,60})\)")
_SOURCE = re.compile(r"(?<![\w.:])(\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,8})(?![\w.])")
"""The address that an answer comes from."""
_TOOK = re.compile(r"%.*\D(\d{1,12})\s?[^\W\d_]{1,10}\s*$")
_COUNT = re.compile(r"(?<![\d.,+])\d{1,9}(?![\d]|[.,]\d)")
UNITS_NS = {"us": 1000, "µs": 1000, "usec": 1000, "s": NANOSECONDS, "sec": NANOSECONDS}
"""Units that are no milliseconds; all others are a translation of them."""


def recognises(content: Any) -> bool:
    """Whether text comes from ping."""
    beginning = content[:FIRST_LINES]
    first = [stamps.split(line)[1] for line in beginning.split("\n")]
    return NPING not in beginning and any(_HEADER.match(line) or _answer(line[:LONGEST_LINE]) for line in first)


def read(content: Any) -> Reading:
    """The answers, and what is missing between them, as probes; raises `Unusable`."""
    found = _PingLines()
    for line in lines(content):
        found.take(line[:LONGEST_LINE].rstrip())
    return _reading(found)


class _PingLines:
    """What the lines said so far."""

    def __init__(self) -> None:
        self._budget = budget.current()
        self.sessions: list[Session] = []
        self.addresses: list[str] = []
        self.stamps: list[Stamp] = []
        """Of every line that has one."""
        self.unstamped = 0
        """The lines about probes without a timestamp."""
        self.doubles = self.noted = self.below = 0
        self._is_end = False

    def take(self, line: str) -> None:
        """Read a line."""
        stamp, text = stamps.split(line)
        if stamp:
            self.stamps.append(stamp)
        if _HEADER.match(text):
            self._begin(text)
        elif text.startswith("--- "):
            self._is_end = True
        elif "%" in text and (self._is_end or "packets transmitted" in text):
            self._end(text)
        else:
            self._probe(text, stamp)

    def _begin(self, text: str) -> None:
        self._is_end = False
        size = _SIZE.search(text.partition(" ")[2])
        words = text.replace("(", " (").split()
        host = words[1].rstrip(":") if len(words) > 1 else ""
        if text.startswith("PING6("):
            host = words[-1]
        address = _ADDRESS.search(text)
        self.addresses.append(address[1] if address else host)
        first = 0 if _FROM_0.search(text) else 1
        self.sessions.append(Session(host, int(size[1] or size[2]) if size else None, first))

    def _end(self, text: str) -> None:
        """The line of counts at the end."""
        counts = [int(count) for count in _COUNT.findall(text.partition("%")[0])]
        took = _TOOK.search(text)
        if self.sessions and len(counts) > 1:
            last = self.sessions[-1]
            last.sent, last.received = counts[0], counts[1]
            last.took_ns = milliseconds(float(took[1])) if took else None
        self._is_end = False

    def _probe(self, text: str, stamp: Stamp | None) -> None:
        answer = _answer(text)
        lost = None if answer else _SEQUENCE.search(text)
        if answer is None and lost is None:
            return
        self._budget.records(1)
        self.unstamped += stamp is None
        index = max(0, len(self.stamps) - 1)
        if answer:
            self._answered(text, answer, index)
        elif lost:
            session, number = self._session(text, int(lost[1]), None)
            session.lost.setdefault(number, ProbeResult(None, index))
            session.saw(number)

    def _answered(self, text: str, answer: "tuple[int, int | None, str, bool]", index: int) -> None:
        seq, rtt_ns, note, is_below = answer
        is_noted = "(" in note or "!" in note or "（" in note
        session, number = self._session(text, seq, rtt_ns, is_noted)
        if number in session.answers and is_noted:
            self.doubles += 1
            return
        if rtt_ns is None:
            session.untimed.add(number)
        else:
            session.answers[number] = ProbeResult(rtt_ns, index)
            self.noted += is_noted
            self.below += is_below
        session.saw(number)

    def _session(self, text: str, seq: int, rtt_ns: int | None, is_noted: bool = False) -> tuple[Session, int]:
        """The session that a line is of, and the probe's number in it; a new one if it fits none."""
        session = self._of_address(text)
        source = _SOURCE.search(text) if rtt_ns is not None else None
        host = source[1].strip(":") if source else ""
        if session and session.first is None and host and session.host not in ("", host):
            session = None  # lines without the first one of their run, of another target
        if session:
            session.host = session.host or host
            number = session.number(seq, rtt_ns)
            if number is not None and (number not in session.answers or is_noted or rtt_ns is None):
                return session, number
        self.sessions.append(Session(session.host if session else host, session.size if session else None))
        self.addresses.append(self.addresses[self.sessions.index(session)] if session else host)
        return self.sessions[-1], seq

    def _of_address(self, text: str) -> Session | None:
        """The last session with an address in this line; otherwise the last."""
        if not self.sessions:
            return None
        recent = list(zip(self.addresses, self.sessions, strict=True))[:-9:-1]
        return next((each for address, each in recent if address and _has(text, address)), self.sessions[-1])


def _has(text: str, address: str) -> bool:
    return re.search(rf"(?<![\w.:]){re.escape(address)}(?![\w.]|:\w)", text) is not None


def _answer(text: str) -> tuple[int, int | None, str, bool] | None:
    """The number of an answered probe, its round trip, what follows it, and whether that is only a bound."""
    line = _NUMBERED.search(text)
    if line is None:
        return None
    values = (each for each in _VALUE.finditer(line["rest"]) if not each["word"].lower().startswith(_NO_TIMES))
    value = next(values, None)
    if value is None:
        return (int(line["seq"]), None, line["rest"], False) if _ANSWERED.search(text) else None
    number = float(value["value"].replace(",", "."))
    is_cut_to_0 = number == 0 and value["value"].isdigit()  # whole milliseconds, as AIX prints them
    is_below = value["sign"] == "<" or is_cut_to_0
    number = (1.0 if is_cut_to_0 else number) * (BELOW if is_below else 1)
    rtt_ns = round(number * UNITS_NS[value["unit"]]) if value["unit"] in UNITS_NS else milliseconds(number)
    return int(line["seq"]), rtt_ns, line["rest"][value.end() :], is_below


def _reading(found: _PingLines) -> Reading:
    kept = [session for session in found.sessions if session.numbers or session.sent]
    hosts = list(dict.fromkeys(session.host for session in kept))
    if len(hosts) > MOST_HOSTS:
        raise Unusable(f"found more than {MOST_HOSTS} targets; allowed: at most that")
    _check(kept)
    times = stamps.on_one_axis(found.stamps) if found.stamps and not found.unstamped else None
    is_date = times is not None and found.stamps[0].kind is Epoch.DATE
    reading = Reading("ping", title=f"ping {', '.join(hosts)[:150] or 'a host'}", clock=is_date)
    interval_ns = next(filter(None, map(sessions.interval_of, kept)), DEFAULT_INTERVAL_NS)
    for host in hosts:
        own = [session for session in kept if session.host == host]
        size = next((session.size for session in own if session.size is not None), None)
        made = sessions.probes(own, times, interval_ns)
        if times is not None and any(stamp.is_whole for stamp in found.stamps):
            made = sessions.smoothed(made)
        name = traffic_name(host) if len(hosts) > 1 and host else "ping"
        reading.ping(reading.new_name(name), made, **({} if size is None else {"payload_bytes": size}))
    reading.warnings += _warnings(found, kept, times, interval_ns)
    return reading


def _check(kept: Sequence[Session]) -> None:
    """Raise `Unusable` if no round trip is there, though there were answers."""
    if any(session.answers for session in kept):
        return
    if any(session.untimed for session in kept):
        raise Unusable("answers without round-trip times; ping measures them with 16 bytes of data or more (-s)")
    if any(session.received for session in kept):
        raise Unusable("ping received answers, but printed no round-trip times; run it without -q and -f")


def _warnings(found: _PingLines, kept: Sequence[Session], times: Sequence[int] | None, interval_ns: int) -> list[str]:
    made = []
    if times is None:
        why = "no timestamps (ping -D)"
        if found.stamps:
            why = (
                f"{found.unstamped} lines have no timestamp"
                if found.unstamped
                else "the zero of the timestamps is not known (ts -i?)"
            )
        made.append(f"{why}: probes are taken to have been sent every {interval_ns / 1e6:g} ms")
    elif found.stamps[0].kind is not Epoch.DATE:
        made.append("the timestamps have no date with a time zone: when the run began is not known")
    if times is not None and any(stamp.is_whole for stamp in found.stamps):
        made.append("the timestamps are in whole seconds: probes were sent up to a second earlier or later")
    targets = len({session.host for session in kept})
    if len(kept) > targets:
        apart = "" if times is not None else "; the time between them is not known, and they follow one another"
        made.append(f"found {len(kept)} runs of ping to {targets} host{'s' * (targets > 1)}{apart}")
    for session in kept:
        if session.is_cut:
            made.append(
                f"ping received {session.received} answers, but the file has {len(session.answers)} of them: the "
                "others are not known, and neither are the losses"
            )
    if any(map(sessions.is_stopped, kept)):
        made.append("the last probes count as lost, but may have been on their way when ping was stopped")
    counts = {
        "answers without a round-trip time, which are left out": sum(len(session.untimed) for session in kept),
        "duplicates, which are left out": found.doubles,
        "answers with a note, as of a wrong checksum, which are kept": found.noted,
        "round trips that are only known to be below a bound, of which half is taken": found.below,
    }
    return made + [f"{what}: {count}" for what, count in counts.items() if count]
