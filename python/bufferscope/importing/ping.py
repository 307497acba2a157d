"""What `ping` prints: of iputils, with time stamps (`-D`) and without, of BSD and macOS, and of busybox.

Lost probes are derived from gaps in the sequence numbers, and from the lines of `-O` and of errors. With `-D`, a time
stamp is when the line was printed: the answer had then just arrived. Without, probes are taken to have been sent at
equal intervals: those that the last line implies (`time 410ms`), otherwise a second.
"""

import re
from functools import cached_property
from typing import Any

from bufferscope.importing.result import Probe, Reading, unwrapped, with_missing
from bufferscope.importing.values import NANOSECONDS, milliseconds

DEFAULT_INTERVAL_NS = NANOSECONDS
LONGEST_LINE = 500
"""No line of ping is longer."""
FIRST_LINES = 4000
_SIZE = re.compile(r"\b(\d{1,5})(?:\(\d+\) bytes of data| data bytes)")
_IPUTILS = "bytes of data"
_ANSWER = re.compile(r"\b(?:icmp_[rs]eq|seq)=(\d{1,9})\b.*?\btime[=<](\d{1,9}(?:\.\d{1,6})?) ?ms")
_LOST = re.compile(r"\bicmp_seq[= ](\d{1,9})\b")
_STAMP = re.compile(r"^\[(\d{1,12})\.(\d{1,9})\] ")
_SENT = re.compile(r"^(\d{1,9}) packets transmitted\b")
_TOOK = re.compile(r", time (\d{1,12})ms$")


def recognises(content: Any) -> bool:
    """Whether a text comes from ping."""
    lines = content[:FIRST_LINES].lstrip().split("\n")
    return lines[0].startswith(("PING ", "PING6(")) or any(_ANSWER.search(line[:LONGEST_LINE]) for line in lines)


def read(content: Any) -> Reading:
    """The answers, and what is missing between them, as probes."""
    lines = _Lines()
    for line in content.splitlines():
        lines.take(line[:LONGEST_LINE].rstrip())
    found = Reading("ping", title=f"ping {lines.host}", clock=lines.stamped)
    settings: dict[str, object] = {} if lines.size is None else {"payload_bytes": lines.size}
    found.ping("ping", lines.probes(), **settings)
    if not lines.stamped:
        found.warnings.append(
            f"no time stamps (ping -D): probes are taken to have been sent every {lines.interval_ns / 1e6:g} ms"
        )
    return found


class _Lines:
    """What the lines said so far."""

    def __init__(self) -> None:
        self.host = "a host"
        self.size: int | None = None
        self._first: int | None = None
        """The first sequence number, if the first line shows the program."""
        self._seen: list[tuple[int, int | None, int | None]] = []
        """Sequence number, round trip, and time stamp, in the order of the lines."""
        self._sent = 0
        self._took_ns: int | None = None

    def take(self, line: str) -> None:
        if line.startswith("PING"):
            self._begin(line)
        elif (total := _SENT.match(line)) is not None:
            took = _TOOK.search(line)
            self._sent, self._took_ns = int(total[1]), milliseconds(float(took[1])) if took else None
        elif "(DUP!)" not in line:
            self._probe(line)

    def _begin(self, line: str) -> None:
        size = _SIZE.search(line)
        self.host = line.split()[1] if " " in line else self.host
        self.size = int(size[1]) if size else None
        self._first = 1 if _IPUTILS in line else 0

    def _probe(self, line: str) -> None:
        stamp = _STAMP.match(line)
        t_ns = int(stamp[1]) * NANOSECONDS + int(stamp[2].ljust(9, "0")) if stamp else None
        if answer := _ANSWER.search(line):
            self._seen.append((int(answer[1]), milliseconds(float(answer[2])), t_ns))
        elif lost := _LOST.search(line):
            self._seen.append((int(lost[1]), None, t_ns))

    @cached_property
    def stamped(self) -> bool:
        """Whether all lines about probes have a time stamp; to be asked when all lines are taken."""
        return bool(self._seen) and all(t_ns is not None for _, _, t_ns in self._seen)

    @property
    def interval_ns(self) -> int:
        """The time between two probes, as the last line implies."""
        return self._took_ns // (self._sent - 1) if self._took_ns and self._sent > 1 else DEFAULT_INTERVAL_NS

    def probes(self) -> list[Probe]:
        """The probes in the order of sending; the sequence numbers begin as ping's do."""
        numbers = unwrapped([seq for seq, _, _ in self._seen])
        answered = {seq: each for seq, each in zip(numbers, self._seen, strict=True) if each[1] is not None}
        known = [Probe(seq, self._sent_ns(seq, rtt_ns, t_ns), rtt_ns) for seq, (_, rtt_ns, t_ns) in answered.items()]
        if not known:
            lost = dict(zip(reversed(numbers), reversed(self._seen), strict=True))
            known = [Probe(seq, self._sent_ns(seq, None, t_ns), None) for seq, (_, _, t_ns) in lost.items()]
        first = min(numbers, default=0) if self._first is None else self._first
        last = max(
            [*numbers, *([first + self._sent - 1] if self._first is not None and self._sent else [])], default=-1
        )
        return with_missing(known, first, last, self.interval_ns)

    def _sent_ns(self, seq: int, rtt_ns: int | None, t_ns: int | None) -> int:
        return seq * self.interval_ns if not self.stamped or t_ns is None else t_ns - (rtt_ns or 0)
