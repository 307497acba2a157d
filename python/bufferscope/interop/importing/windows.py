"""What `ping` of Windows prints, in any language and code page.

Nothing is numbered and words are translated, so lines are read by their form. Behind the line with the address and the
number of bytes, each line up to an empty one is a probe: an answer ends with `=14ms TTL=57`, `<1ms TTL=57`, or for IPv6
without the TTL; any other is a lost probe. At its end, ping counts what it sent, and the lines must agree with that.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from bufferscope.interop.external_runs import traffic_name
from bufferscope.interop.importing import budget, stamps
from bufferscope.interop.importing.content import Unusable, lines
from bufferscope.interop.importing.result import Probe, Reading
from bufferscope.interop.importing.stamps import Epoch, Stamp
from bufferscope.interop.importing.values import NANOSECONDS, milliseconds

INTERVAL_NS = NANOSECONDS
BELOW_MS = 0.5
"""Taken for `<1ms`."""
LONGEST_LINE = 300
FIRST_LINES = 8000
MOST_HOSTS = 1000
_UNIT = r"\s?[^\s\d=<>()%,:]{0,5}"
_OF_4 = re.compile(rf"(?P<sign>[=<＝＜])\s?(?P<value>\d{{1,7}}){_UNIT}\s+TTL\s?[=＝]\s?\d{{1,3}}$", re.IGNORECASE)
_OF_6 = re.compile(rf":.*[^\W\d]\s?(?P<sign>[=<＝＜])\s?(?P<value>\d{{1,7}}){_UNIT}$")
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,8}(?:%\d{1,5})?)"
_HOST = re.compile(rf"(?:(?P<name>[^\s\[\]]{{1,253}})\s)?\[?(?P<address>{_ADDRESS})\]?")
_SIZE = re.compile(r"(?<![\w.:-])(\d{1,5})(?![\w.:-])|(?<![\w.:-])(\d{1,5})(?=[^\W\d_])")
_COUNTS = re.compile(r"[=＝]\s?(\d{1,9})(?=\D|$)")
_TTL_AT_END = re.compile(r"TTL\s?[=＝]\s?\d{1,3}\s*$", re.IGNORECASE | re.MULTILINE)
_HEADER_END = (":", "：")
THREE_COUNTS = 3


def recognises(content: Any) -> bool:
    """Whether text comes from ping of Windows."""
    first = content[:FIRST_LINES]
    if "icmp_seq" in first or "ttl=" in first:
        return False
    if _TTL_AT_END.search(first):
        return True
    texts = [stamps.split(line.strip())[1] for line in first.split("\n")]
    counts = sum(len(_COUNTS.findall(line)) for line in texts)
    return any(map(_header, texts)) and (counts >= THREE_COUNTS or any(map(_OF_6.search, texts)))


@dataclass
class _Session:
    """A run of ping: the lines about probes in their order."""

    host: str
    size: int | None
    rtts: list[int | None] = field(default_factory=list)
    stamps: list[Stamp | None] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """At its end: sent, received, lost."""


def read(content: Any) -> Reading:
    """The answers and the lost probes; raises `Unusable`."""
    found = _WindowsLines()
    for line in lines(content):
        found.take(line[:LONGEST_LINE].strip().strip("\u200e\u200f"))
    return _reading(found)


class _WindowsLines:
    """What the lines said so far."""

    def __init__(self) -> None:
        self._budget = budget.current()
        self.sessions: list[_Session] = []
        self.below = 0
        self._is_open = False
        """Whether the next line is about a probe."""

    def take(self, line: str) -> None:
        """Read a line."""
        stamp, text = stamps.split(line)
        if header := _header(text):
            self.sessions.append(header)
            self._is_open = True
        elif answer := _OF_4.search(text) or _OF_6.search(text) if _is_reply(text) else None:
            self._is_open = True
            self.below += _is_below(answer)
            self._add(_rtt_ns(answer), stamp)
        elif not text or text.endswith(_HEADER_END):
            self._is_open = False
        elif self._is_open:
            self._add(None, stamp)
        elif self.sessions and len(self.sessions[-1].counts) < THREE_COUNTS:
            self.sessions[-1].counts += [int(count) for count in _COUNTS.findall(text)]

    def _add(self, rtt_ns: int | None, stamp: Stamp | None) -> None:
        self._budget.records(1)
        if not self.sessions:
            self.sessions.append(_Session("", None))
        self.sessions[-1].rtts.append(rtt_ns)
        self.sessions[-1].stamps.append(stamp)


def _header(text: str) -> _Session | None:
    """A line with an address and a number of bytes begins a run."""
    if not text.endswith(_HEADER_END) or "=" in text:
        return None
    host = _HOST.search(text)
    size = host and _SIZE.search(text[: host.start("address")] + "|" + text[host.end("address") :].rstrip(":："))
    if not host or not size:
        return None
    has_name = host["name"] and "." in host["name"] and text[host.end("address") :].startswith("]")
    return _Session(host["name"] if has_name else host["address"], int(size[1] or size[2]))


def _is_reply(text: str) -> bool:
    return len(_COUNTS.findall(text)) < THREE_COUNTS or "TTL" in text.upper()


def _is_below(answer: re.Match[str]) -> bool:
    """Whether a round trip is only known to be shorter: `<1ms`, and `=0ms` of programs like it."""
    return answer["sign"] in "<＜" or int(answer["value"]) == 0


def _rtt_ns(answer: re.Match[str]) -> int | None:
    value = int(answer["value"])
    return milliseconds(BELOW_MS * max(1, value) if _is_below(answer) else value)


def _reading(found: _WindowsLines) -> Reading:
    kept = [session for session in found.sessions if session.rtts]
    hosts = list(dict.fromkeys(session.host for session in kept))
    if len(hosts) > MOST_HOSTS:
        raise Unusable(f"found more than {MOST_HOSTS} targets; allowed: at most that")
    known = [stamp for session in kept for stamp in session.stamps]
    times = stamps.on_one_axis([each for each in known if each]) if known and all(known) else None
    is_date = times is not None and all(each.kind is Epoch.DATE for each in known if each)
    reading = Reading("ping of Windows", title=f"ping {', '.join(hosts)[:150] or 'a host'}", clock=is_date)
    made: dict[str, list[Probe]] = {host: [] for host in hosts}
    for index, (host, rtt_ns) in enumerate((session.host, rtt) for session in kept for rtt in session.rtts):
        own = made[host]
        sent_ns = len(own) * INTERVAL_NS if times is None else times[index] - (rtt_ns or 0)
        own.append(Probe(len(own), sent_ns, rtt_ns))
    for host, probes in made.items():
        size = next((session.size for session in kept if session.host == host and session.size is not None), None)
        name = traffic_name(host) if len(hosts) > 1 and host else "ping"
        reading.ping(reading.new_name(name), probes, **({} if size is None else {"payload_bytes": size}))
    reading.warnings += _warnings(found, kept, has_times=times is not None)
    return reading


def _warnings(found: _WindowsLines, kept: list[_Session], *, has_times: bool) -> list[str]:
    made = ["ping of Windows prints whole milliseconds"]
    if not has_times:
        made.append(
            "no timestamps: probes are taken to have been sent every second (Windows waits longer for lost ones)"
        )
    if found.below:
        made.append(f"round trips that are only known to be below 1 ms: {found.below}; half of it is taken")
    if len(kept) > (targets := len({session.host for session in kept})):
        made.append(f"found {len(kept)} runs of ping to {targets} host{'s' * (targets > 1)}, which follow one another")
    for session in kept:
        lost = session.rtts.count(None)
        if len(session.counts) >= THREE_COUNTS and session.counts[0] != len(session.rtts):
            made.append(
                f"ping sent {session.counts[0]} probes to {session.host or 'a host'} and lost {session.counts[2]}; "
                f"the file has lines of {len(session.rtts)}, {lost} of them lost: lines are missing, or are not of "
                "ping"
            )
    return made
